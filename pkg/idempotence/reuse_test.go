// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"testing"

	"github.com/admitkit/admitkit/test/corpus"
)

// TestServerResultsAreReused tests webhooks in this process and behind servers. With servers, the run must reuse
// results, so that it makes fewer calls for a correct webhook. The verdicts must be the same.
func TestServerResultsAreReused(t *testing.T) {
	for _, name := range []string{"P17 sorted keys", "P11 the user mounts", "P04 refuses its own output"} {
		all := slices.Concat(corpus.Patterns(), corpus.Lookalikes())
		c := all[slices.IndexFunc(all, func(c corpus.Case) bool { return len(c.Name) >= len(name) && c.Name[:len(name)] == name })]
		here, served := runCase(t, c, Options{Objects: 3}), runSubject(t, byURL(t, c), c, Options{Objects: 3})
		if len(c.Laws) == 0 && served.Calls > here.Calls*3/4 {
			t.Errorf("%s: %d calls, served %d", name, here.Calls, served.Calls)
		}
		if !slices.EqualFunc(here.Laws, served.Laws, func(a, b LawResult) bool { return a.Law == b.Law && a.Verdict == b.Verdict }) {
			t.Errorf("%s:\n%+v, served\n%+v", name, here.Laws, served.Laws)
		}
	}
}
