// SPDX-License-Identifier: Apache-2.0

// Package doctor finds what is wrong with the webhooks of a cluster: webhooks that the API server cannot reach, that
// can lock up the cluster, and that are slow or fail. It also covers conversion webhooks of custom resources and
// aggregated API servers, which the API server calls in the same way.
//
// [Diagnose] takes a [Snapshot] and returns findings. It makes no network calls. If the snapshot lacks a fact, checks that
// need this fact report nothing. Package internal/cli/doctor reads snapshots.
package doctor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/lint"
)

// A Finding is one problem.
type Finding struct {
	Check    string        `json:"check"`
	Severity lint.Severity `json:"severity"`
	Title    string        `json:"title"`
	// Subject is the object with the problem, such as "Service shop/hook" or "APIService/v1.example.com".
	Subject string `json:"subject"`
	// Rejects is true if the API server rejects requests now, because it cannot call one of the Callers.
	Rejects bool `json:"rejects"`
	// Callers are the webhooks with the problem. Conversion webhooks and aggregated API servers count as webhooks here.
	Callers []Caller `json:"callers"`
	// Evidence has the facts that prove the problem. Like error messages, they have no capital letter and no full stop.
	Evidence []string `json:"evidence"`
	Fix      string   `json:"fix"`
	// Commands carry out the fix or find its cause. They can be pasted.
	Commands []string `json:"commands,omitempty"`
}

// A Caller is the part of a finding that names a webhook.
type Caller struct {
	// Object is the kind and name of the object that registers the webhook, as Kind/name.
	Object string `json:"object"`
	// Webhook is the name of the webhook. It is empty for a conversion webhook and an aggregated API server.
	Webhook string `json:"webhook,omitempty"`
	// FailurePolicy is Fail or Ignore. It is Fail for a conversion webhook and an aggregated API server.
	FailurePolicy string `json:"failurePolicy"`
}

func (c Caller) String() string {
	if c.Webhook == "" {
		return c.Object
	}
	return c.Webhook + " of " + c.Object + " (" + c.FailurePolicy + ")"
}

// causes are the checks of problems that are not symptoms of others.
var causes = []func(*Snapshot) []Finding{places, bundles, connections, certificates, paths, blocked, policies, lockouts, ready, disruptions, nodes, slow, fights, unverified}

// Diagnose returns the problems of a snapshot, worst first.
func Diagnose(s *Snapshot) []Finding {
	var found []Finding
	for _, check := range causes {
		found = append(found, check(s)...)
	}
	found = addSymptoms(s, merge(found))
	slices.SortStableFunc(found, compare)
	return found
}

// compare puts the worse finding first: one that makes the API server reject requests now, then a higher severity, then
// the check that comes first in Checks.
func compare(a, b Finding) int {
	rank := func(f Finding) int {
		if f.Rejects {
			return -1
		}
		return slices.Index(lint.Severities(), f.Severity)
	}
	order := func(f Finding) int {
		return slices.IndexFunc(checks, func(c Check) bool { return c.ID == f.Check })
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(order(a), order(b)), strings.Compare(a.Subject, b.Subject))
}

// merge joins findings of one check about one object, such as the same problem of several webhooks of a configuration.
func merge(all []Finding) []Finding {
	type key struct{ check, subject, fix string }
	index := map[key]int{}
	var merged []Finding
	for _, f := range all {
		k := key{f.Check, f.Subject, f.Fix}
		at, known := index[k]
		if !known {
			index[k] = len(merged)
			merged = append(merged, f)
			continue
		}
		m := &merged[at]
		m.Rejects = m.Rejects || f.Rejects
		m.Callers = appendNew(m.Callers, f.Callers...)
		m.Evidence = appendNew(m.Evidence, f.Evidence...)
		m.Commands = appendNew(m.Commands, f.Commands...)
	}
	return merged
}

func appendNew[T comparable](to []T, values ...T) []T {
	for _, v := range values {
		if !slices.Contains(to, v) {
			to = append(to, v)
		}
	}
	return to
}

// find returns a finding of a check about the targets.
func find(check, subject string, targets []*Target, evidence ...string) Finding {
	c := checkOf(check)
	f := Finding{Check: check, Severity: c.Severity, Title: c.Title, Subject: subject, Fix: c.Fix, Callers: []Caller{}, Evidence: evidence}
	for _, t := range targets {
		f.Callers = appendNew(f.Callers, t.caller())
		f.Rejects = f.Rejects || c.unreachable && t.Fails
	}
	return f
}

// withSeverity overrides the severity of the check. A finding that is no error does not count as rejecting requests.
func (f Finding) withSeverity(severity lint.Severity) Finding {
	f.Severity = severity
	f.Rejects = f.Rejects && severity == lint.Error
	return f
}

// with adds commands to a finding.
func (f Finding) with(commands ...string) Finding {
	f.Commands = commands
	return f
}
