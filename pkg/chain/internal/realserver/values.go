// SPDX-License-Identifier: Apache-2.0

package realserver

import "reflect"

// EqualValue reports whether two decoded JSON values are equal.
func EqualValue(a, b any) bool { return reflect.DeepEqual(a, b) }

// emptyValue reports whether a JSON value is null, an empty array or an object with only empty members.
func emptyValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, member := range v {
			if !emptyValue(member) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// contains reports whether whole has every value of part that is not empty. An object in whole may have more
// members, such as defaults.
func contains(whole, part any) bool {
	if emptyValue(part) {
		return true
	}
	switch p := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		for key, member := range p {
			ok = ok && contains(w[key], member)
		}
		return ok
	case []any:
		w, ok := whole.([]any)
		if !ok || len(w) != len(p) {
			return false
		}
		for i := range p {
			if !contains(w[i], p[i]) {
				return false
			}
		}
		return true
	}
	return EqualValue(whole, part)
}
