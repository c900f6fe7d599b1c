// SPDX-License-Identifier: Apache-2.0

// Package visible makes text of strangers fit to be looked at: names of webhooks, messages of denials, names in certificates.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text shows what cannot be seen: characters that control a terminal or the direction of text would have a
// reader see another text than the API server sees. Newlines and tabs stay. It takes the colours out of what is painted,
// so paint afterwards.
func Text(text string) string {
	if strings.IndexFunc(text, hidden) < 0 && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for _, c := range strings.ToValidUTF8(text, "\uFFFD") {
		if hidden(c) {
			fmt.Fprintf(&out, `\u%04x`, c)
		} else {
			out.WriteRune(c)
		}
	}
	return out.String()
}

// Line is Text in one line: a name with a newline in it would forge the next one.
func Line(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(text))
}

func hidden(c rune) bool {
	if c == '\n' || c == '\t' {
		return false
	}
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Noncharacter_Code_Point, c)
}
