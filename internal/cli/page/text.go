// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/textutil"
)

// These limits keep the page small enough for a phone and for mail.
const (
	mostFindings = 300
	mostSteps    = 30      // of a finding
	mostLines    = 1500    // of a text
	mostRows     = 500     // of a table
	mostFilters  = 40      // entries of one filter; "others" has the rest
	longLine     = 400     // characters of a line of a text
	longValue    = 200     // characters of a value that is shown unfolded
	longestValue = 8000    // characters of a value
	mostOfTexts  = 6 << 20 // bytes of all texts of steps
)

// A value is text for the template. Only the beginning of long text is shown until the reader unfolds it.
type value struct {
	Text string // clipped to longestValue
	Head string // beginning of long text, or empty
	Size string // length of long text, or empty
}

func valueOf(text string) value {
	text = textutil.Visible(text)
	if utf8.RuneCountInString(text) <= longValue {
		return value{Text: text}
	}
	v := value{Head: first(text, longValue/2) + "…", Size: fmt.Sprintf("%d characters", utf8.RuneCountInString(text))}
	v.Text = clip(text, longestValue)
	return v
}

// clip shortens text to at most the number of characters in most, and appends how many it has cut off.
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

// linesOf splits a text into at most mostLines lines.
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
		lines = append(lines, clip(textutil.Visible(l), longLine))
	}
	return lines
}
