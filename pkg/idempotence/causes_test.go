// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"
	"testing"
)

// TestAdviceBesideAViolation checks that advice is left out only if a violation of L1 has the same cause.
func TestAdviceBesideAViolation(t *testing.T) {
	finding := func(law Law, verdict Verdict, kind, deed string) *Violation {
		return &Violation{Law: law, Verdict: verdict, Kind: kind, deed: []string{deed}}
	}
	advice := finding(L4b, Advice, "v1 Pod", "patch spec/containers/env")
	for _, c := range []struct {
		beside *Violation
		left   int
	}{
		{finding(L1, Fails, "v1 Pod", "patch spec/containers/env"), 1},
		{finding(L1, Fails, "v1 Pod", "patch spec/volumes"), 2},
		{finding(L1, Fails, "apps/v1 Deployment", "patch spec/containers/env"), 2},
		{finding(L1, Advice, "v1 Pod", "patch spec/containers/env"), 2},
		{finding(L5, Fails, "v1 Pod", "patch spec/containers/env"), 2},
	} {
		r := &Report{Findings: []*Violation{advice, c.beside}}
		if r.dropConsequences(); len(r.Findings) != c.left || r.Findings[len(r.Findings)-1] != c.beside {
			t.Errorf("%s %s of %s: %d findings are left, want %d", c.beside.Law, c.beside.Verdict, c.beside.Kind, len(r.Findings), c.left)
		}
	}
}

// TestExceptionsForElements checks which field paths of exceptions name elements in a valid way.
func TestExceptionsForElements(t *testing.T) {
	for path, valid := range map[string]bool{
		"spec.containers[0].env": false, "spec.containers[*].env": true, "spec.containers[name=web].env": true,
		"metadata.annotations[example.com/1]": true, "spec.ports[80]": true,
	} {
		err := checkExceptions([]Exception{{Path: path, Reason: "a test"}})
		if valid != (err == nil) || err != nil && !strings.Contains(err.Error(), "[*]") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
