// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/lint"
)

// A symptom is a problem that often has a cause among the other findings. It is then evidence of the cause, and
// otherwise a finding of its own.
type symptom struct {
	check    string
	target   *Target
	evidence []string
	commands []string
}

// symptomChecks look for symptoms.
var symptomChecks = []func(*Snapshot) []symptom{probes, unavailable, callProblems}

// addSymptoms adds each symptom to the evidence of its cause, or else as a finding. Such a finding can be the cause of
// symptoms of later checks.
func addSymptoms(s *Snapshot, found []Finding) []Finding {
	for _, check := range symptomChecks {
		var own []Finding
		for _, y := range check(s) {
			if at := causeOf(y.target, found); at >= 0 {
				found[at].Evidence = appendNew(found[at].Evidence, y.evidence...)
				continue
			}
			own = append(own, find(y.check, y.target.Object(), []*Target{y.target}, y.evidence...).with(y.commands...))
		}
		found = append(found, merge(own)...)
	}
	return found
}

// causeOf returns the index of the finding that explains why calls of a target fail, or -1.
func causeOf(t *Target, found []Finding) int {
	return slices.IndexFunc(found, func(f Finding) bool {
		return checkOf(f.Check).unreachable && f.Severity == lint.Error && slices.Contains(f.Callers, t.caller())
	})
}

// unavailable reports aggregated API servers that the API server does not use.
func unavailable(s *Snapshot) (all []symptom) {
	for _, t := range s.Targets {
		if t.Unavailable != "" {
			all = append(all, symptom{"unavailable", t, []string{fmt.Sprintf("the condition Available of %s is False: %s", t.Object(), strings.TrimSuffix(t.Unavailable, "."))},
				[]string{"kubectl get apiservice " + t.Name + " -o yaml"}})
		}
	}
	return all
}

// probes reports webhooks whose calls failed in a dry run.
func probes(s *Snapshot) (all []symptom) {
	for _, t := range s.Targets {
		for _, message := range s.Failures[t] {
			all = append(all, symptom{check: "call-fails", target: t, evidence: []string{"a dry run failed: " + message}})
		}
	}
	return all
}

// fights reports webhooks that undo each other's changes.
func fights(s *Snapshot) []Finding {
	var found []Finding
	for _, f := range s.Fights {
		var targets []*Target
		for _, w := range f.Webhooks {
			at := slices.IndexFunc(s.Targets, func(t *Target) bool { return t.Object() == w.Object && t.Webhook == w.Webhook })
			if at >= 0 {
				targets = append(targets, s.Targets[at])
			}
		}
		slices.SortFunc(targets, func(a, b *Target) int { return strings.Compare(a.Object(), b.Object()) })
		if len(targets) == len(f.Webhooks) { // otherwise one of them has been removed since
			found = append(found, find("undo-each-other", targets[0].Object(), targets, f.Evidence).with("admitkit audit FILE"))
		}
	}
	return found
}

// unverified reports aggregated API servers whose certificate the API server does not verify.
func unverified(s *Snapshot) []Finding {
	var found []Finding
	for _, t := range s.Targets {
		if t.Unverified {
			found = append(found, find("not-verified", t.Object(), []*Target{t}, "insecureSkipTLSVerify is true, so any program at the address of the Service can answer"))
		}
	}
	return found
}
