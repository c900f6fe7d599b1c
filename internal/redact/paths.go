// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"strings"
)

// A path is a field path that the user names: the names of members, and "*" for any member or element.
type path []string

// parsePath parses a field path in the form of messages of the API server, such as spec.users[*].pin or
// metadata.annotations[example.com/pin], or a JSON pointer, such as /spec/users/*/pin.
func parsePath(text string) (path, error) {
	if strings.HasPrefix(text, "/") {
		names := strings.Split(text[1:], "/")
		for i, name := range names {
			names[i] = unescapePointer(name)
		}
		return names, nil
	}
	var out path
	for rest, first := text, true; rest != ""; first = false {
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			name, after, closed := strings.Cut(inner, "]")
			if !closed || name == "" {
				return nil, fmt.Errorf("%q is not a field path: close each bracket, with a name or * in it", text)
			}
			out, rest = append(out, name), after
			continue
		}
		if !first {
			var dot bool
			if rest, dot = strings.CutPrefix(rest, "."); !dot {
				return nil, fmt.Errorf("%q is not a field path: want a dot before %q", text, rest)
			}
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("%q is not a field path: a name is empty", text)
		}
		out, rest = append(out, rest[:end]), rest[end:]
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("a field path is empty: want one such as spec.users[*].pin")
	}
	return out, nil
}

func unescapePointer(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// tokensOf returns the names in a JSON pointer.
func tokensOf(pointer string) []string {
	if !strings.HasPrefix(pointer, "/") {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		tokens[i] = unescapePointer(token)
	}
	return tokens
}

// next removes the next name from the paths, and returns those that match and are longer. done reports whether one of them is complete.
func next(paths []path, name string) (left []path, done bool) {
	for _, p := range paths {
		if p[0] != name && p[0] != "*" {
			continue
		}
		if len(p) == 1 {
			done = true
		} else {
			left = append(left, p[1:])
		}
	}
	return left, done
}
