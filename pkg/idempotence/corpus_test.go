// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/test/corpus"
)

// runCase runs the harness on a webhook of package corpus in this process. It skips the unused families of inputs.
func runCase(t *testing.T, c corpus.Case, o Options, unused ...explore.Family) *Report {
	t.Helper()
	return runSubject(t, Handler(c.Webhook, c.New), c, o, unused...)
}

// runSubject runs the harness on subject, which serves the webhook of c. It uses the samples, exceptions and rivals of
// c, and skips the unused families of inputs.
func runSubject(t *testing.T, subject Subject, c corpus.Case, o Options, unused ...explore.Family) *Report {
	t.Helper()
	in := internals{unused: map[explore.Family]bool{}}
	for _, f := range unused {
		in.unused[f] = true
	}
	return runInternal(t.Context(), t, subject, c, o, in)
}

// runUntilFound is runCase, but ends the run as soon as it finds a violation of a law that c breaks.
func runUntilFound(t *testing.T, c corpus.Case, o Options) *Report {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return runInternal(ctx, t, Handler(c.Webhook, c.New), c, o, internals{found: func(v *Violation) {
		if isOf(c, v) {
			cancel()
		}
	}})
}

func runInternal(ctx context.Context, t *testing.T, subject Subject, c corpus.Case, o Options, in internals) *Report {
	t.Helper()
	o.Samples = slices.Concat(c.Samples, o.Samples)
	o.Objects = cmp.Or(o.Objects, objectsOfCase)
	for _, e := range c.Exceptions {
		o.Exceptions = append(o.Exceptions, Exception{Path: fieldPath(e.Path), Law: Law(e.Law), Reason: e.Reason})
	}
	for i, rival := range c.Rivals {
		other := c.Webhook
		other.Name = fmt.Sprintf("rival-%d.example.com", i)
		o.Rivals = append(o.Rivals, Handler(other, rival))
	}
	if c.Observe != nil {
		o.Observe = c.Observe
	}
	report, err := runWith(ctx, subject, o, in)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// fieldPath converts a JSON pointer to the field path of an exception.
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

// shareOf returns every share-th element of a list.
func shareOf[T any](cases []T, share int) (some []T) {
	for i := 0; i < len(cases); i += share {
		some = append(some, cases[i])
	}
	return some
}

func TestFindsAllPatterns(t *testing.T) {
	for _, c := range shareOf(corpus.Patterns(), share) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if report := runUntilFound(t, c, Options{}); !finds(report, c) && !(c.Advice && report.OK()) {
				t.Errorf("no violation of %v:\n%s", c.Laws, text(report))
			}
		})
	}
}

func TestFlagsNoLookalike(t *testing.T) {
	for _, c := range shareOf(corpus.Lookalikes(), share) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report := runCase(t, c, Options{Objects: max(objectsOfCase/2, 3)})
			if t.Log(text(report)); !report.OK() {
				t.Error("a correct webhook is flagged")
			}
		})
	}
}
