// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/cli/page"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// colourful returns a report with many findings and names of all lengths.
func colourful(t *testing.T) *Report {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	var log strings.Builder
	for i := range 600 {
		log.WriteString(randomEvent(r, i).line())
	}
	long := "a-webhook-with-a-very-long-name.of-a-project.with-a-long-domain.example.com"
	log.WriteString(event{ID: "long", Code: 500, User: "eve\x1b[2J\n\u202ereversed", Message: `admission webhook "` + long + `" denied the request: ` + strings.Repeat("no ", 200), Calls: []recordedCall{{Hook: long, FailedOpen: true}}}.line())
	log.WriteString(event{ID: "withheld", Namespace: "eve\x1b[2J", Annotations: map[string]string{long + "/mode": "Shadow", long + "/would-deny": strings.Repeat("no\u202e ", 200)}}.line())
	log.WriteString("nonsense\n")
	return read(t, Options{Top: 5, Slow: 1, Again: 2}, log.String())
}

// TestText checks that text fits into 80 columns except for long words, and has no characters that control a terminal.
func TestText(t *testing.T) {
	var plain, coloured strings.Builder
	r := colourful(t)
	if err := r.WriteText(&plain, screen.Painter{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(plain.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > width && len(strings.Fields(line)) > 2 {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.ContainsAny(line, "\x1b\u202e\r\x00") {
			t.Errorf("not for a terminal: %q", line)
		}
		if strings.HasSuffix(line, " ") {
			t.Errorf("white space at the end: %q", line)
		}
	}
	if err := r.WriteText(&coloured, screen.Painter{On: true}); err != nil {
		t.Fatal(err)
	}
	bare := coloured.String()
	for _, code := range []string{"0", "1", "2", "31", "33"} {
		bare = strings.ReplaceAll(bare, "\x1b["+code+"m", "")
	}
	if bare != plain.String() {
		t.Error("colours change more than the colour")
	}
}

// TestPage checks that all links on the page have a target, and that the page shows the whole report.
func TestPage(t *testing.T) {
	r := colourful(t)
	p := r.Page()
	var ids []string
	for i, f := range p.Findings {
		if slices.Contains(ids, f.ID) || f.ID == "" || f.Law != r.Findings[i].Rule || len(f.Steps) < len(r.Findings[i].Examples) {
			t.Errorf("finding %d: %+v", i, f)
		}
		ids = append(ids, f.ID)
	}
	links := 0
	for _, table := range p.Tables {
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Errorf("%s: %d cells, %d columns", table.Title, len(row), len(table.Columns))
			}
			for _, c := range row {
				if c.To != "" && !slices.Contains(ids, c.To) {
					t.Errorf("%s: %q leads to %q, which is not there", table.Title, c.Text, c.To)
				}
				if c.To != "" {
					links++
				}
			}
		}
	}
	if links == 0 || len(p.Tables) != 4 || p.Status != page.Failed || len(p.Notes) < 2 {
		t.Errorf("%d links, %d tables, status %v, notes %q", links, len(p.Tables), p.Status, p.Notes)
	}
}

// TestOutcomeOfACall checks that the call which rejected a request is shown as a denial or a failure. Any other call
// without a change must be shown as "did not change the object".
func TestOutcomeOfACall(t *testing.T) {
	const name = "m.example.com"
	rows := []struct {
		message string
		code    int
		call    ExampleCall
		want    string
	}{
		{`admission webhook "m.example.com" denied the request: no`, 403, ExampleCall{Webhook: name}, "denied the request"},
		{`Internal error occurred: failed calling webhook "m.example.com": EOF`, 500, ExampleCall{Webhook: name}, "failed"},
		{`admission webhook "other.example.com" denied the request: no`, 403, ExampleCall{Webhook: name}, "did not change the object"},
		{`admission webhook "m.example.com" denied the request: no`, 403, ExampleCall{Webhook: name, Mutated: true}, "changed the object"},
		{"", 201, ExampleCall{Webhook: name}, "did not change the object"},
		{"", 201, ExampleCall{Webhook: name, FailedOpen: true}, "failed and was ignored"},
	}
	for _, row := range rows {
		if got := (&Example{Code: row.code, Message: row.message}).outcome("", row.call); got != row.want {
			t.Errorf("%q: got %q, want %q", row.message, got, row.want)
		}
	}
}
