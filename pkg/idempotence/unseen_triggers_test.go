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

// switchedOn counts the webhooks that a search switches on without a sample.
type switchedOn struct {
	all, found           int // webhooks
	allNoted, foundNoted int // those of them that act only on objects with a certain label or annotation
}

func (s *switchedOn) String() string {
	return fmt.Sprintf("%d of %d, and %d of %d with a label or annotation", s.found, s.all, s.foundNoted, s.allNoted)
}

// TestUnseenTriggers requires that the harness reports a trigger for the sample of each unseen webhook. It also searches
// for a trigger without the sample, and logs a table of the results and the share of the webhooks that are switched on.
// Of those in Go, at least three of four must be. Of those in Go and Python with a label or annotation as trigger, at
// least half must be. The harness knows only the URL of a webhook in Python.
func TestUnseenTriggers(t *testing.T) {
	python := unseen.StartPython(t, "../../test/corpus/unseen/"+unseen.PythonProgram)
	var mu sync.Mutex
	var lines []string
	var inGo, byURL switchedOn
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
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				conditions, found := strings.Join(conditionsOf(with), "; "), "-"
				count := &inGo
				if c.New == nil {
					count = &byURL
				}
				noted := refused || strings.Contains(conditions, ".labels") || strings.Contains(conditions, ".annotations")
				on := without.Changed > 0 && len(without.Triggers) > 0
				count.all++
				if noted {
					count.allNoted++
				}
				if on {
					count.found++
					found = strings.Join(conditionsOf(without), "; ")
				}
				if on && noted {
					count.foundNoted++
				}
				lines = append(lines, fmt.Sprintf("%s\n  with its sample: %s\n  without:         %s", c.Name, conditions, found))
			})
		}
	})
	t.Logf("\n%s\nwithout a sample are switched on\n  in Go:  %v\n  by URL: %v", strings.Join(lines, "\n"), &inGo, &byURL)
	if 4*inGo.found < 3*inGo.all {
		t.Error("fewer than three of four of the webhooks in Go are switched on without a sample")
	}
	if 2*(inGo.foundNoted+byURL.foundNoted) < inGo.allNoted+byURL.allNoted {
		t.Error("fewer than half of the webhooks with a label or annotation are switched on without a sample")
	}
}
