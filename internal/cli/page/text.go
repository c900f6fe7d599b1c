// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/textutil"
)

// How much is shown, so that a page stays one that a phone can show and a mail can carry.
const (
	mostFindings = 300
	mostSteps    = 30      // of a finding
	mostLines    = 1500    // of a text
	mostRows     = 500     // of a table
	mostFilters  = 40      // of a kind; what comes after these is "others"
	longLine     = 400     // characters of a line of a text
	longValue    = 200     // characters of a value that is not folded
	longestValue = 8000    // characters of a value
	mostOfTexts  = 6 << 20 // bytes of all texts of steps
)

// A value is shown as a whole, or its beginning with the whole folded behind it.
type value struct {
	Text string // the whole, as far as it is shown
	Head string // its beginning, if it is long
	Size string // how long it is, if it is long
}

func valueOf(text string) value {
	text = clean(text)
	if utf8.RuneCountInString(text) <= longValue {
		return value{Text: text}
	}
	v := value{Head: first(text, longValue/2) + "…", Size: fmt.Sprintf("%d characters", utf8.RuneCountInString(text))}
	v.Text = clip(text, longestValue)
	return v
}

// clip leaves out the end of a long text, and says so.
func clip(text string, most int) string {
	if n := utf8.RuneCountInString(text); n > most {
		return first(text, most) + fmt.Sprintf(" … (%d more characters)", n-most)
	}
	return text
}

func first(text string, characters int) string {
	for i := range text {
		if characters == 0 {
			return text[:i]
		}
		characters--
	}
	return text
}

// clean is the text as it can be shown.
func clean(text string) string { return textutil.Visible(text) }

// linesOf takes a text apart.
func linesOf(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		if len(lines) == mostLines {
			return append(lines, fmt.Sprintf("… (%d more lines)", strings.Count(text, "\n")+1-mostLines))
		}
		lines = append(lines, clip(clean(l), longLine))
	}
	return lines
}
