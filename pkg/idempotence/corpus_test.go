// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/test/corpus"
)

// runCase tests a webhook of the corpus in this process.
func runCase(t *testing.T, c corpus.Case, more ...Option) *Report {
	t.Helper()
	return runSubject(t, Handler(c.Webhook, c.New), c, more...)
}

// runSubject tests a webhook of the corpus with what its case declares.
func runSubject(t *testing.T, subject Subject, c corpus.Case, more ...Option) *Report {
	t.Helper()
	opts := []Option{Samples(c.Samples...), Objects(objectsOfCase)}
	for _, e := range c.Exceptions {
		opts = append(opts, Exceptions(Exception{Path: fieldPath(e.Path), Law: Law(e.Law), Reason: e.Reason}))
	}
	for i, rival := range c.Rivals {
		other := c.Webhook
		other.Name = fmt.Sprintf("rival-%d.example.com", i)
		opts = append(opts, Rivals(Handler(other, rival)))
	}
	if c.Observe != nil {
		opts = append(opts, Observe(c.Observe))
	}
	report, err := Run(t.Context(), subject, append(opts, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// fieldPath writes a JSON pointer as a pattern of an exception.
func fieldPath(pointer string) string {
	var b strings.Builder
	for _, token := range strings.Split(pointer, "/")[1:] {
		b.WriteString("[" + strings.NewReplacer("~1", "/", "~0", "~").Replace(token) + "]")
	}
	return b.String()
}

func text(r *Report) string {
	var b strings.Builder
	_ = r.WriteText(&b, false)
	return b.String()
}

func shareOf(cases []corpus.Case, share int) (some []corpus.Case) {
	for i := 0; i < len(cases); i += share {
		some = append(some, cases[i])
	}
	return some
}

func TestFindsAllPatterns(t *testing.T) {
	for _, c := range shareOf(corpus.Patterns(), share) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if report := runCase(t, c); !finds(report, c) && !(c.Advice && report.OK()) {
				t.Errorf("no violation of %v:\n%s", c.Laws, text(report))
			}
		})
	}
}

func TestFlagsNoLookalike(t *testing.T) {
	for _, c := range shareOf(corpus.Lookalikes(), share) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report := runCase(t, c, Objects(max(objectsOfCase/2, 3)))
			if t.Log(text(report)); !report.OK() {
				t.Error("a correct webhook is flagged")
			}
		})
	}
}
