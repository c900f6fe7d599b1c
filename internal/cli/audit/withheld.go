// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Withheld counts requests that a hook in the mode Warn or Shadow admitted, although it would have denied or changed
// them, or would have failed.
type Withheld struct {
	Webhook string       `json:"webhook"`
	Mode    webhook.Mode `json:"mode"`
	// Outcome is Denied, Failed or Mutated.
	Outcome   webhook.Outcome `json:"outcome"`
	Namespace string          `json:"namespace,omitempty"`
	// Owner is the controller of the object, such as "ReplicaSet web". If the log does not have it, User is set instead.
	Owner string `json:"owner,omitempty"`
	User  string `json:"user,omitempty"`
	// Reason is the message of the denial or the failure, or the operations of the patch. It is shortened, and "…" stands
	// for the name of the object, so that objects with the same problem count together.
	Reason   string  `json:"reason"`
	Requests int     `json:"requests"`
	Example  Example `json:"example"`
	// ExampleReason is the reason of the example, with the name of the object.
	ExampleReason string `json:"exampleReason"`
}

// A withheldKey identifies a row. Requests with equal keys are counted together.
type withheldKey struct {
	hook                           string
	mode                           webhook.Mode
	outcome                        webhook.Outcome
	namespace, owner, user, reason string
}

// A withheldRow counts requests and keeps the earliest one as an example.
type withheldRow struct {
	count   int
	example Example
	reason  string // of the example
}

// outcomes are the outcomes in the order of the report, with the keys of their annotations and the words for them.
var outcomes = []struct {
	outcome                webhook.Outcome
	key, verb, noun, nouns string
}{
	{webhook.Denied, webhook.AuditWouldDeny, "denied", "denial", "denials"},
	{webhook.Failed, webhook.AuditWouldFail, "failed", "failure", "failures"},
	{webhook.Mutated, webhook.AuditWouldChange, "changed", "change", "changes"},
}

// judgeWithheld counts the withheld decisions and failures that the annotations of the request record.
func (t *tally) judgeWithheld(q *request) {
	for _, n := range q.own {
		for _, o := range outcomes {
			mode := q.mode(n.about)
			if n.key != o.key || mode == "" || !t.options.wants(hook{name: n.about}) {
				continue
			}
			k := withheldKey{hook: n.about, mode: mode, outcome: o.outcome, namespace: q.object.namespace, owner: q.owner(), reason: clip(textutil.WithoutName(n.text, q.object.name), mostMessage)}
			if k.owner == "" {
				k.user = clip(q.user, mostText)
			}
			row, isNew := t.withheld.row(k)
			row.count++
			if e := keep(nil, q, 0, nil)[0]; isNew || compareExamples(e, row.example) < 0 {
				row.example, row.reason = e, clip(n.text, mostMessage)
			}
		}
	}
}

// mode returns the mode in which the hook with this name answered, or "" if it enforced.
func (q *request) mode(name string) webhook.Mode {
	for _, n := range q.own {
		if mode := webhook.Mode(n.text); n.about == name && n.key == webhook.AuditMode && (mode == webhook.Warn || mode == webhook.Shadow) {
			return mode
		}
	}
	return ""
}

// owner returns the kind and the name of the controller of the object in the request, or "" if the log does not have it.
func (q *request) owner() (owner string) {
	_ = each(q.sent, func(name string, member []byte) {
		if name != "metadata" {
			return
		}
		_ = each(member, func(name string, member []byte) {
			var references []metav1.OwnerReference
			if name != "ownerReferences" || json.Unmarshal(member, &references) != nil {
				return
			}
			for _, r := range references {
				if r.Controller != nil && *r.Controller {
					owner = clip(r.Kind+" "+r.Name, mostText)
				}
			}
		})
	})
	return owner
}

// withheldRows returns the rows. The hook with the most requests comes first, and for each hook the reason with the most.
func (t *tally) withheldRows() []Withheld {
	rows, total := []Withheld{}, map[withheldKey]int{}
	ofHook := func(w *Withheld) withheldKey {
		return withheldKey{hook: w.Webhook, mode: w.Mode, outcome: w.Outcome}
	}
	ofReason := func(w *Withheld) withheldKey {
		return withheldKey{hook: w.Webhook, mode: w.Mode, outcome: w.Outcome, reason: "reason " + w.Reason} // never equal to ofHook
	}
	for k, row := range t.withheld.rows {
		w := Withheld{
			Webhook: k.hook, Mode: k.mode, Outcome: k.outcome, Namespace: k.namespace, Owner: k.owner, User: k.user, Reason: k.reason,
			Requests: row.count, Example: row.example, ExampleReason: row.reason,
		}
		rows = append(rows, w)
		total[ofHook(&w)] += w.Requests
		total[ofReason(&w)] += w.Requests
	}
	slices.SortFunc(rows, func(a, b Withheld) int {
		return cmp.Or(
			cmp.Compare(place(a.Outcome), place(b.Outcome)),
			cmp.Compare(total[ofHook(&b)], total[ofHook(&a)]), cmp.Compare(a.Webhook, b.Webhook), cmp.Compare(a.Mode, b.Mode),
			cmp.Compare(total[ofReason(&b)], total[ofReason(&a)]), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.User, b.User),
		)
	})
	return rows
}

// place returns the index of an outcome in outcomes.
func place(o webhook.Outcome) int {
	for i := range outcomes {
		if outcomes[i].outcome == o {
			return i
		}
	}
	return len(outcomes)
}

// where returns the namespace as it is shown in the report.
func (w *Withheld) where() string { return cmp.Or(w.Namespace, "no namespace") }

// who returns the owner, or else the user, as it is shown in the report.
func (w *Withheld) who() string {
	if w.Owner != "" {
		return w.Owner
	}
	return "user " + w.User
}

// withheldVerdict summarises the withheld decisions in one sentence.
func (r *Report) withheldVerdict() string {
	var parts []string
	for _, o := range outcomes {
		n := 0
		for _, w := range r.Withheld {
			if w.Outcome == o.outcome {
				n += w.Requests
			}
		}
		if n > 0 {
			parts = append(parts, textutil.CountAs(n, o.noun, o.nouns))
		}
	}
	switch {
	case len(parts) > 0:
		return "Withheld: " + strings.Join(parts, ", ") + "."
	case len(r.Incomplete) > 0:
		return "No withheld decisions in the part of the logs that could be read."
	}
	return "No withheld decisions."
}
