// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/test/corpus"
)

// known lists the webhooks of the held-out corpus that the harness misjudges, with the reasons.
var known = map[string]string{
	"B22 adds a scheduling gate to scheduled Pods": "reported as advice: the API server names spec.nodeName",
	"B40 adds a second source to a volume":         "reported as advice: the user's volume has the webhook's name",
	"B68 gateway: rewrites numbers as floats":      "reported as advice",
	"B67 records the operation (Widget)":           "annotations of a manifest applied again are not compared",
}

// wrongly describes how a report misjudges a webhook. It returns an empty string if the report is right.
func wrongly(c corpus.Case, report *Report) string {
	switch {
	case len(c.Laws) == 0 && !report.OK():
		return "a correct webhook is flagged"
	case len(c.Laws) == 0 && (report.Changed == 0 || len(report.Incomplete) > 0):
		return "a correct webhook is hardly looked at"
	case len(c.Laws) > 0 && !finds(report, c):
		return "no violation of " + strings.Join(c.Laws, ", ")
	}
	return ""
}

func TestHeldOut(t *testing.T) {
	correct, broken := corpus.HeldOut()
	if raced {
		broken = nil // with the race detector, only correct webhooks are tested
	}
	for _, c := range shareOf(slices.Concat(correct, broken), shareOfHeldOut) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report := runUntilFound(t, c, Options{Objects: 12}) // some of these bugs appear on few of the objects
			wrong := wrongly(c, report)
			switch reason, listed := known[c.Name]; {
			case wrong != "" && !listed:
				t.Errorf("%s:\n%s", wrong, text(report))
			case wrong == "" && listed:
				t.Errorf("judged well now, take it from the list: %s", reason)
			}
		})
	}
}

func TestHeldOutNames(t *testing.T) {
	correct, broken := corpus.HeldOut()
	names := map[string]bool{}
	for _, c := range slices.Concat(correct, broken) {
		number, _, _ := strings.Cut(c.Name, " ")
		for _, name := range []string{number, c.Webhook.Name} {
			if names[name] {
				t.Errorf("%s is there twice", name)
			}
			names[name] = true
		}
	}
	for name := range known {
		if !slices.ContainsFunc(slices.Concat(correct, broken), func(c corpus.Case) bool { return c.Name == name }) {
			t.Errorf("%s is no case", name)
		}
	}
}
