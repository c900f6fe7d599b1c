// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"strings"
)

// checkPath tells what is wrong with the path of an exception, which would never match anything.
func checkPath(path string) error {
	if strings.HasPrefix(path, "rival:") {
		return nil
	}
	if path == "$" || strings.HasPrefix(path, "$.") || strings.HasPrefix(path, "$[") {
		return errors.New("a path begins with a field, such as spec")
	}
	for rest, first := path, true; rest != ""; first = false {
		if strings.HasPrefix(rest, "[") {
			key, after, closed := strings.Cut(rest[1:], "]")
			switch {
			case !closed:
				return errors.New("a [ has no ]")
			case key == "":
				return errors.New("there is nothing between [ and ]")
			case after != "" && after[0] != '.' && after[0] != '[':
				return fmt.Errorf("after ] comes . or [, not %q", after)
			}
			rest = after
			continue
		}
		if !first {
			rest = rest[1:] // the dot
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		switch {
		case name == "":
			return errors.New("a name is missing before or after a dot")
		case strings.ContainsAny(name, "/]"):
			return fmt.Errorf("%q is no name of a field: fields are parted by dots, and what has a slash in its name stands in brackets", name)
		}
		rest = rest[end:]
	}
	return nil
}
