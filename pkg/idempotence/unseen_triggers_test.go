// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admitkit/admitkit/test/corpus/unseen"
)

// TestUnseenTriggers requires that the harness reports a trigger for the sample of each unseen webhook. It also searches
// for a trigger without the sample, and logs a table of the results and the share of the webhooks that are switched on.
// At least half of those in Go must be. Without a sample, the harness cannot generate objects of some kinds; these count
// as not switched on.
func TestUnseenTriggers(t *testing.T) {
	python := unseen.StartPython(t, "../../test/corpus/unseen/"+unseen.PythonProgram)
	var mu sync.Mutex
	var lines []string
	on, all := map[bool]int{}, map[bool]int{} // by whether the webhook is in Go
	t.Run("cases", func(t *testing.T) {
		for _, c := range unseenCases() {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				options := optionsOf(t, c)
				options.Without = Laws[1:] // learning alone makes no checks, and one law is needed
				options.Objects = 3
				with, err := Run(t.Context(), subjectOf(c, python), options)
				if err != nil {
					t.Fatal(err)
				}
				refused := slices.ContainsFunc(with.Notes, func(r Reason) bool { return r.Code == ReasonSampleRefused })
				if len(with.Triggers) == 0 && !refused {
					t.Errorf("no trigger of the sample is reported:\n%s", text(with))
				}
				options.Samples = nil
				without, err := Run(t.Context(), subjectOf(c, python), options)
				if err != nil && codeOf(err) != ReasonUnknownKinds {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				found, inGo := "-", c.New != nil
				all[inGo]++
				if err == nil && without.Changed > 0 && len(without.Triggers) > 0 {
					on[inGo]++
					found = strings.Join(conditionsOf(without), "; ")
				}
				lines = append(lines, fmt.Sprintf("%s\n  with its sample: %s\n  without:         %s", c.Name, strings.Join(conditionsOf(with), "; "), found))
			})
		}
	})
	t.Logf("\n%s\n%d of %d in Go and %d of %d by URL are switched on without a sample", strings.Join(lines, "\n"), on[true], all[true], on[false], all[false])
	if 2*on[true] < all[true] {
		t.Error("fewer than half of the webhooks in Go are switched on without a sample")
	}
}
