// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"reflect"
	"slices"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/test/corpus"
)

// TestServerResultsAreReused tests webhooks in this process and behind servers. With servers, the run must reuse
// results, so that it makes fewer calls for a correct webhook. The verdicts must be the same.
func TestServerResultsAreReused(t *testing.T) {
	for _, name := range []string{"P17 sorted keys", "P11 the user mounts", "P04 refuses its own output"} {
		all := slices.Concat(corpus.Patterns(), corpus.Lookalikes())
		c := all[slices.IndexFunc(all, func(c corpus.Case) bool { return len(c.Name) >= len(name) && c.Name[:len(name)] == name })]
		// These families make other checks for webhooks behind a URL.
		others := []explore.Family{explore.ParallelCalls, explore.Namesakes}
		here, served := runCase(t, c, Options{Objects: 3}, others...), runSubject(t, byURL(t, c), c, Options{Objects: 3}, others...)
		if here.Checks != served.Checks || len(c.Laws) == 0 && served.Calls > here.Calls*3/4 {
			t.Errorf("%s: %d checks and %d calls, served %d and %d", name, here.Checks, here.Calls, served.Checks, served.Calls)
		}
		if !reflect.DeepEqual(here.Laws, served.Laws) {
			t.Errorf("%s:\n%+v, served\n%+v", name, here.Laws, served.Laws)
		}
	}
}
