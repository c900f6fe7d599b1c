// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/chain"
)

// requestSeconds is the API server's time limit for a write request.
const requestSeconds = 34

// relate finds the mutating webhooks that may change the object, and records which decisions and reinvocations depend
// on these changes. It also sets how often each webhook is called.
func (t *explainer) relate(e *chain.Explanation, result *Object) {
	if t.req.Operation == admissionv1.Delete {
		for _, w := range t.webhooks {
			if e.Twice && w.Called == Yes {
				w.Times = 2
			}
		}
	}
	for i, w := range t.webhooks {
		if w.Called == Yes && w.Times == 0 {
			w.Times = 1
		}
		if t.req.Operation == admissionv1.Delete { // there is nothing to change
			continue
		}
		if w.looksAtObject() {
			w.DependsOn = names(t.webhooks[:i])
		}
		if w.mutating && w.Called != No {
			result.Changing = append(result.Changing, w.hook.name)
			if w.ifNeeded() {
				w.Reinvocation.By = names(t.webhooks[i+1:])
				w.Reinvocation.ByAgain = names(slices.DeleteFunc(slices.Clone(t.webhooks[:i]), func(before *explainedWebhook) bool { return !before.ifNeeded() }))
			}
		}
	}
}

func (w *explainedWebhook) ifNeeded() bool {
	return w.reinvocation == admissionregistrationv1.IfNeededReinvocationPolicy
}

// names returns the names of the mutating webhooks that may be called.
func names(all []*explainedWebhook) []string {
	var names []string
	for _, w := range all {
		if w.mutating && w.Called != No {
			names = append(names, w.hook.name)
		}
	}
	return names
}

// looksAtObject reports whether a change to the object may change the decision about the webhook.
func (w *explainedWebhook) looksAtObject() bool {
	looks := false
	for _, p := range w.Predicates {
		switch p.Predicate {
		case chain.ByObjectSelector:
			looks = looks || w.objects != nil && len(w.objects.MatchLabels)+len(w.objects.MatchExpressions) > 0
		case chain.ByMatchCondition:
			looks = looks || mentioned(p.Expression).object
		default:
			if p.Answer == chain.Fails {
				return false
			}
		}
	}
	return looks
}

// worstCase returns the time that the called webhooks take if all of them time out.
func (t *explainer) worstCase(twice bool) *Time {
	var w Time
	for _, h := range t.webhooks {
		switch {
		case h.Called == No:
		case h.mutating:
			w.Mutating += h.timeout
			if len(h.Reinvocation.By)+len(h.Reinvocation.ByAgain) > 0 {
				w.Again += h.timeout
			}
		default:
			w.Validating = max(w.Validating, h.timeout)
		}
	}
	if twice { // a conflict in the second step of a deletion causes a third call
		w.Mutating, w.Validating = 3*w.Mutating, 3*w.Validating
	}
	w.Total = w.Mutating + w.Again + w.Validating
	if w.Total > requestSeconds && t.req.Operation != admissionv1.Connect {
		w.Total, w.Capped = requestSeconds, true
	}
	return &w
}

func (t *explainer) name() string {
	if t.req.Name != "" {
		return t.req.Name
	}
	object := t.req.Object
	if object == nil {
		object = t.req.OldObject
	}
	var o struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(object, &o) // cannot fail: chain has decoded the object
	return o.Metadata.Name
}

// notes returns the notes on a request that are not about one webhook.
func (t *explainer) notes(e *chain.Explanation) []string {
	notes := append(slices.Clone(t.req.notes), t.facts.notes...)
	if len(t.policies) > 0 {
		notes = append(notes, fmt.Sprintf("MutatingAdmissionPolicy %s may change the object before webhooks receive it", or(t.policies)))
	}
	if e.Twice {
		notes = append(notes, "the API server deletes a Pod without a node in two steps, and calls webhooks for each; it calls them a third time if its cache does not have the first step yet")
	}
	if k8svalidation.Virtual(t.req.resource.GroupResource()) && !t.facts.excludesVirtual() {
		notes = append(notes, fmt.Sprintf("from Kubernetes 1.37 on, no webhook is called for a %s: explain that with --kubernetes 1.37", t.req.kind.Kind))
	}
	if t.facts.Source != "files" && t.req.resource.definition == nil && t.req.resource.unsure {
		notes = append(notes, fmt.Sprintf("if an extension API server serves %s, the extension API server calls the webhooks, not this API server", t.req.resource.GroupResource()))
	}
	return notes
}
