// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"strings"
)

// checkPath returns an error if the path of an exception can never match. In the key of a list element, * matches any
// text. Names of fields, annotations and labels have no globs.
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
				return errors.New("a [ is not closed")
			case key == "":
				return errors.New("the brackets are empty")
			case isGlob(key) && isMetadataMap(strings.TrimSuffix(path, rest)):
				return fmt.Errorf("[%s] is the key of a map: * matches part of a key only in a list", key)
			case after != "" && after[0] != '.' && after[0] != '[':
				return fmt.Errorf("expected . or [ after ], not %q", after)
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
			return errors.New("a field name is missing before or after a dot")
		case strings.ContainsAny(name, "/]"):
			return fmt.Errorf("%q is not a field name: separate fields with dots, and put a name with a slash in brackets", name)
		case isGlob(name):
			return fmt.Errorf("%q is not a field name: * matches part of a key only in brackets, as in volumes[name=creds-*]", name)
		}
		rest = rest[end:]
	}
	return nil
}

// isGlob reports whether * stands for a part of the key. A * alone matches any element, member or field.
func isGlob(key string) bool { return key != "*" && strings.Contains(key, "*") }

// isMetadataMap reports whether the path ends in the annotations or labels of an object or a template.
func isMetadataMap(path string) bool {
	for _, field := range []string{"metadata.annotations", "metadata.labels"} {
		if path == field || strings.HasSuffix(path, "."+field) {
			return true
		}
	}
	return false
}
