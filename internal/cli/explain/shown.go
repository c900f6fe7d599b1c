// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/admitkit/admitkit/internal/textutil"
)

// shownLine puts text on one line and escapes its invisible characters.
func shownLine(text string) string {
	return textutil.Visible(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}

// escaped escapes the invisible characters of a JSON text as \uXXXX.
func escaped(text string) string {
	var out strings.Builder
	for _, c := range text {
		switch {
		case textutil.Visible(string(c)) == string(c):
			out.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}
	return out.String()
}
