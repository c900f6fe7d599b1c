// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"
)

// Traffic has the counts of the API servers that answered.
type Traffic struct {
	*Metrics
	// Servers is the number of API servers that answered, and Known that of all known ones.
	Servers, Known int
	// Watched is how long the API servers were watched. It is 0 for the time since they started.
	Watched time.Duration
}

// These are the limits of the checks of calls.
const (
	slowSeconds = 1.0  // a bound of the API server's histogram
	maxSlow     = 0.01 // of the calls may take longer
	maxFailures = 0.01 // of the calls may fail, such as during a rollout
	minAtFault  = 2    // one slow call, or one failure, can be the first call after a start
)

// key returns the name of a target in the metrics.
func (t *Target) key() CallKey {
	if t.Kind == Conversion {
		return CallKey{Conversion, t.Name}
	}
	return CallKey{t.Kind, t.Webhook}
}

// CallsOf returns the counts of a target, or nil.
func (s *Snapshot) CallsOf(t *Target) *Calls {
	if s.Traffic == nil || t.Kind == Aggregated {
		return nil
	}
	return s.Traffic.Calls[t.key()]
}

// callProblems reports webhooks whose calls fail or are slow.
func callProblems(s *Snapshot) (all []symptom) {
	for _, t := range s.Targets {
		c := s.CallsOf(t)
		if c == nil {
			continue
		}
		report := func(check, format string, n, of float64) {
			if isMuch(n, of) {
				all = append(all, symptom{check: check, target: t, evidence: []string{fmt.Sprintf("%s, %.0f of %.0f %s", s.Traffic.when(), n, of, format)}})
			}
		}
		report("fails-closed", "calls failed, and the API server rejected the requests", c.Failed, c.All)
		report("fails-open", "calls failed and were ignored", c.Ignored, c.All)
		report("condition-errors", "evaluations of matchConditions failed", c.ConditionErrors, c.All+c.ConditionErrors)
	}
	return all
}

// isMuch reports whether so many failures of calls count.
func isMuch(failures, calls float64) bool {
	return failures >= minAtFault && failures > maxFailures*calls
}

// slow reports webhooks for which requests wait long. A failed call often takes until its timeout, so that a cause of
// failures does not explain this.
func slow(s *Snapshot) []Finding {
	var found []Finding
	for _, t := range s.Targets {
		c := s.CallsOf(t)
		if c == nil {
			continue
		}
		n := c.Above(slowSeconds) - c.Failed - c.Ignored
		if n < minAtFault || n <= maxSlow*c.All {
			continue
		}
		evidence := fmt.Sprintf("%s, %.0f of %.0f calls took more than %g s", s.Traffic.when(), c.Above(slowSeconds), c.All, slowSeconds)
		if most := c.AtMost(0.99); most > 0 {
			evidence += fmt.Sprintf("; 99 %% took at most %g s", most)
		}
		found = append(found, find("slow", t.Object(), []*Target{t}, evidence))
	}
	return found
}

// when returns the time that the counts cover, such as "within 1m0s".
func (t *Traffic) when() string {
	if t.Watched > 0 {
		return fmt.Sprintf("within %s", t.Watched)
	}
	return "since " + t.Start.UTC().Format(time.RFC3339)
}
