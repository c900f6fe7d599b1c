// SPDX-License-Identifier: Apache-2.0

package textutil

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible escapes every invisible character of text as \uXXXX and replaces invalid UTF-8. Such characters control
// terminals or the direction of text, and could hide what the API server reads. Newlines and tabs stay.
// It escapes colours too, so colour its result and not its argument.
func Visible(text string) string {
	if strings.IndexFunc(text, invisible) < 0 && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for _, c := range strings.ToValidUTF8(text, "\uFFFD") {
		if invisible(c) {
			fmt.Fprintf(&out, `\u%04x`, c)
		} else {
			out.WriteRune(c)
		}
	}
	return out.String()
}

// VisibleLine is Visible for text that must stay on one line: it also escapes newlines and tabs, so that a name
// with a newline cannot forge the next line of output.
func VisibleLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(text))
}

func invisible(c rune) bool {
	if c == '\n' || c == '\t' {
		return false
	}
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Noncharacter_Code_Point, c)
}
