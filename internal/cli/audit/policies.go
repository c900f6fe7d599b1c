// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/page"
)

// A PolicyCount has the counts of one admission policy and one of its bindings. The log does not record the evaluations
// that allowed a request.
type PolicyCount struct {
	// Type is "mutating" or "validating".
	Type   string `json:"type"`
	Policy string `json:"policy"`
	// Binding is empty if the policy rejected requests because it is not configured correctly.
	Binding string `json:"binding,omitempty"`
	// Denied counts the requests that the policy rejected.
	Denied int `json:"denied"`
	// Audited counts the requests whose first failed validation was one of this binding, with the validationAction Audit.
	// The log has only the first such validation of a request, because the API server cannot overwrite an annotation.
	Audited int `json:"audited"`
}

// auditedKey is the key of the annotation in which the API server lists the failed validations of bindings with the
// validationAction Audit (publishValidationFailureAnnotation).
const auditedKey = "validation.policy.admission.k8s.io/validation_failure"

type policyKey struct {
	mutating        bool
	policy, binding string
}

// policyDenial returns the policy that rejected a request. It returns false if none did. The log names the policy only in
// the message of the API server.
func policyDenial(message string) (policyKey, bool) {
	k := policyKey{mutating: true}
	rest, ok := strings.CutPrefix(message, "policy ")
	if !ok {
		k.mutating = false
		if _, rest, ok = strings.Cut(message, " is forbidden: ValidatingAdmissionPolicy "); !ok {
			return policyKey{}, false
		}
	}
	if k.policy, rest, ok = quoted(rest); !ok {
		return policyKey{}, false
	}
	if after, bound := strings.CutPrefix(rest, " with binding "); bound {
		if k.binding, rest, ok = quoted(after); !ok {
			return policyKey{}, false
		}
	}
	return k, strings.HasPrefix(rest, " denied request: ")
}

// quoted returns a name in quotes at the beginning of text, and the text after it.
func quoted(text string) (name, rest string, ok bool) {
	if text == "" || text[0] != '\'' && text[0] != '"' {
		return "", "", false
	}
	return strings.Cut(text[1:], text[:1])
}

// mayNamePolicy reports whether the status of a response may name a policy.
func mayNamePolicy(status []byte) bool { return bytes.Contains(status, []byte(" denied request: ")) }

// audited records the bindings that the annotation lists.
func (q *request) audited(value string) {
	var failures []struct{ Policy, Binding string }
	if json.Unmarshal([]byte(value), &failures) != nil {
		q.unread++
		return
	}
	for _, f := range failures {
		if k := (policyKey{policy: f.Policy, binding: f.Binding}); !slices.Contains(q.policies, k) {
			q.policies = append(q.policies, k)
		}
	}
}

// denial returns the policy that rejected the request, or false if none did.
func (q *request) denial() (policyKey, bool) {
	if q.code < 400 || q.rejected().kind != "" { // the message of a webhook may quote the one of a policy
		return policyKey{}, false
	}
	return policyDenial(q.message)
}

// countPolicies adds a request to the rows of the policies. With --webhook, the report has no policies.
func (t *tally) countPolicies(q *request) {
	if len(t.options.Webhooks) > 0 {
		return
	}
	if k, ok := q.denial(); ok {
		row, _ := t.policies.row(k)
		row.Denied++
	}
	for _, k := range q.policies {
		row, _ := t.policies.row(k)
		row.Audited++
	}
}

func (t *tally) policyRows() []PolicyCount {
	rows := []PolicyCount{}
	for k, row := range t.policies.rows {
		row.Type, row.Policy, row.Binding = "validating", k.policy, k.binding
		if k.mutating {
			row.Type = "mutating"
		}
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b PolicyCount) int {
		return cmp.Or(cmp.Compare(b.Denied+b.Audited, a.Denied+a.Audited), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Binding, b.Binding))
	})
	return rows
}

// name returns the policy with its binding, unless both have the same name.
func (c *PolicyCount) name() string {
	if c.Binding == "" || c.Binding == c.Policy {
		return c.Policy
	}
	return c.Policy + ", binding " + c.Binding
}

func (t *printer) policies(r *Report) {
	if len(r.Policies) == 0 {
		return
	}
	t.printf("\n%s\n", t.Bold(fmt.Sprintf("%-*s %7s %7s", policyWidth, "POLICIES (the log has no allowed requests)", "audited", "denied")))
	for _, c := range r.Policies[:min(len(r.Policies), r.Top)] {
		t.row(policyWidth, c.name(), c.Audited, c.Denied)
	}
	if n := len(r.Policies) - r.Top; n > 0 {
		t.printf("%s\n", t.Faint(fmt.Sprintf("and %d more: --top N", n)))
	}
	t.printf("\n%s\n", t.Faint("audited: requests that failed a validation whose binding has the validationAction\nAudit; the log has only the first one of each request"))
}

func (r *Report) policyTable() page.Table {
	t := page.Table{Title: "Admission policies", Text: "Requests that a policy allowed are not recorded. Of the failed validations with the validationAction Audit, the log has only the first one of each request.", Columns: columns("Policy", "Binding", "Type", "Audited", "Denied")}
	for _, c := range r.Policies[:min(len(r.Policies), 10*r.Top)] {
		t.Rows = append(t.Rows, []page.Cell{{Text: c.Policy}, {Text: c.Binding}, {Text: c.Type}, number(c.Audited, page.Plain), number(c.Denied, page.Plain)})
	}
	return t
}
