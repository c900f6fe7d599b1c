// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"slices"
	"strconv"
)

// otherText is a value that no webhook expects. A webhook that acts on it needs only that the value is set.
const otherText = "other"

// alternatives returns values of the type of value, to find out whether the value itself matters: a text that has
// nothing in common with it, and one that resembles it.
func alternatives(value any) (list []any) {
	switch value := value.(type) {
	case string:
		list = append(list, otherText)
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			list = append(list, strconv.FormatInt(n+1, 10))
		}
		if b, err := strconv.ParseBool(value); err == nil {
			list = append(list, strconv.FormatBool(!b))
		}
	case int64:
		list = append(list, value+1)
	case bool:
		list = append(list, !value)
	}
	return slices.DeleteFunc(list, func(v any) bool { return v == value })
}
