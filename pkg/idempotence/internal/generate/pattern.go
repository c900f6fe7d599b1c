// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"regexp/syntax"
	"strings"
)

// matching returns a text that the pattern probably matches, or "" for an invalid pattern. The caller checks the text
// and may try again. Repetitions are short, unless the text needs at least length bytes.
func (b *build) matching(pattern string, length int) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	m := matcher{build: b, more: length}
	m.write(re)
	return m.out.String()
}

type matcher struct {
	*build
	out  strings.Builder
	more int // the minimum length of the text
}

// The maximum lengths that the generator produces. If a schema demands longer texts or lists, samples are needed.
const (
	mostText  = 2000
	mostItems = 1000
)

func (m *matcher) write(re *syntax.Regexp) {
	if m.out.Len() > mostText {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		m.out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		m.out.WriteRune(m.class(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.out.WriteString(pick(m.build, "a", "b", "0", "-"))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			m.write(sub)
		}
	case syntax.OpAlternate:
		m.write(pick(m.build, re.Sub...))
	case syntax.OpStar:
		m.repeat(re.Sub[0], 0, -1)
	case syntax.OpPlus:
		m.repeat(re.Sub[0], 1, -1)
	case syntax.OpQuest:
		m.repeat(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		m.repeat(re.Sub[0], re.Min, re.Max)
	}
}

func (m *matcher) repeat(re *syntax.Regexp, low, high int) {
	if high < 0 {
		high = low + 3
		if missing := m.more - m.out.Len(); missing > 0 {
			low, high = max(low, missing), max(high, missing)
		}
	}
	for range m.between(int64(low), int64(min(high, low+3))) {
		m.write(re)
	}
}

// class picks a character of a class, preferably a printable ASCII one.
func (m *matcher) class(ranges []rune) rune {
	var legible []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		if low, high := max(ranges[i], '!'), min(ranges[i+1], '~'); low <= high {
			legible = append(legible, low, high)
		}
	}
	if len(legible) == 0 {
		legible = ranges
	}
	if len(legible) == 0 {
		return 'a'
	}
	i := m.r.IntN(len(legible)/2) * 2
	return legible[i] + rune(m.r.IntN(int(legible[i+1]-legible[i])+1))
}
