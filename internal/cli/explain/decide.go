// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/chain"
)

// An explainer computes the explanation of one request.
type explainer struct {
	facts *Facts
	hooks []hook
	req   *knownRequest
	// namespaceUnknown means that the labels of the request's namespace are unknown.
	namespaceUnknown bool
	// noLimits means that the namespace is known to have no LimitRange. limited is the result of withLimits.
	noLimits bool
	limited  *chain.Explanation
	// policies are the policies that may change the object before webhooks are called.
	policies []string

	webhooks []*explainedWebhook
}

// An explainedWebhook is a webhook with its explanation.
type explainedWebhook struct {
	*hook
	Webhook
	code    int32 // HTTP status of a rejection by its predicates
	message string
}

func (t *explainer) explain(ctx context.Context, engine *chain.Chain, result *Object) error {
	e, err := engine.Explain(ctx, t.req.Request)
	if err != nil {
		return err
	}
	if t.facts.noLimits != nil && t.req.Namespace != "" {
		if t.noLimits, err = t.facts.noLimits(ctx, t.req.Namespace); err != nil {
			return err
		}
	}
	if t.limited, err = t.withLimits(ctx, engine); err != nil {
		return err
	}
	t.policies = t.mayMutate()
	result.Policies = t.explainPolicies(e)
	for i := range e.Webhooks {
		t.webhooks = append(t.webhooks, t.webhook(i, &e.Webhooks[i]))
	}
	ordered(t.webhooks)
	t.depend(result.Policies)
	result.Request = t.request()
	result.Rejection = t.reject(e, result.Policies)
	t.relate(e, result)
	for i, w := range t.webhooks {
		w.Order = i + 1
		result.Webhooks = append(result.Webhooks, w.Webhook)
	}
	result.WorstCase = t.worstCase(e.Twice)
	result.Notes = t.notes(e)
	return nil
}

func (t *explainer) request() *Request {
	a := t.req
	return &Request{Operation: string(a.Operation), Resource: a.Resource, SubResource: a.SubResource, Kind: metav1.GroupVersionKind(a.kind),
		Namespace: a.Namespace, Name: t.name(), DryRun: a.DryRun, User: a.User.Username, Groups: a.User.Groups}
}

// webhook explains one webhook from the results of its predicates.
func (t *explainer) webhook(i int, e *chain.Explained) *explainedWebhook {
	h := &t.hooks[i]
	w := &explainedWebhook{hook: h, Webhook: Webhook{Type: "validating", Configuration: h.configuration, Name: h.name, Static: h.static,
		FailurePolicy: "Fail", TimeoutSeconds: h.timeout, Predicates: t.predicates(i, e)}}
	if h.ignore {
		w.FailurePolicy = "Ignore"
	}
	if h.mutating {
		w.Type, w.Reinvocation = "mutating", &Reinvocation{Policy: string(h.reinvocation)}
	}
	w.WhenDown = whenDown(h)
	if h.broken != nil {
		w.Called, w.Decision, w.Why, w.Predicates = Unknown, byConfiguration, fmt.Sprintf("this version of admitkit cannot read it: %v", h.broken), []Predicate{}
		return w
	}
	w.decide(t.req.DryRun)
	if e.Kind.Kind != "" && w.Called != No {
		kind := e.Kind
		w.SentAs, w.Converted = &kind, schema.GroupVersionKind(kind) != t.req.kind
	}
	return w
}

func whenDown(h *hook) string {
	if h.ignore {
		return fmt.Sprintf("no response within %d s: the request continues without this webhook", h.timeout)
	}
	return fmt.Sprintf("no response within %d s: the request is rejected with 500", h.timeout)
}

// decide evaluates the predicates in the API server's order. If a predicate does not match, the webhook is not called,
// even if the results of other predicates are unknown.
func (w *explainedWebhook) decide(dryRun bool) {
	isCondition := func(p Predicate) bool { return p.Predicate == chain.ByMatchCondition }
	first := func(answer chain.PredicateResult, of func(Predicate) bool) *Predicate {
		if i := slices.IndexFunc(w.Predicates, func(p Predicate) bool { return p.Answer == answer && of(p) }); i >= 0 {
			return &w.Predicates[i]
		}
		return nil
	}
	before := func(p Predicate) bool { return !isCondition(p) }
	set := func(called Called, p *Predicate) {
		w.Called, w.Decision, w.Why, w.Summary = called, p.Predicate, p.Detail, p.Summary
		if isCondition(*p) {
			w.Why = fmt.Sprintf("condition %q is %s", p.Condition, p.Detail)
		}
	}
	unknown := first(chain.Unknown, before)
	if p := first(chain.Fails, before); p != nil {
		set(No, p)
		return
	}
	if p := first(chain.Errs, before); p != nil && unknown == nil {
		set(No, p)
		w.rejects(http.StatusInternalServerError, p.Detail)
		return
	}
	if p := first(chain.Fails, isCondition); p != nil {
		set(No, p)
		return
	}
	errs := first(chain.Errs, isCondition)
	if errs != nil && w.ignore {
		set(No, errs)
		w.Why = fmt.Sprintf("condition %q cannot be evaluated, which failurePolicy Ignore ignores: %s", errs.Condition, errs.Detail)
		return
	}
	for _, of := range []func(Predicate) bool{before, isCondition} {
		if p := first(chain.Unknown, of); p != nil {
			set(Unknown, p)
			if isCondition(*p) {
				w.Why = fmt.Sprintf("condition %q: %s", p.Condition, p.Detail)
			}
			return
		}
	}
	if errs != nil {
		set(No, errs)
		w.Why = fmt.Sprintf("condition %q cannot be evaluated: %s", errs.Condition, errs.Detail)
		w.rejects(http.StatusForbidden, errs.Detail)
		return
	}
	w.Called, w.Decision, w.Why = Yes, chain.Matches, w.matching()
	if dryRun && w.effects != admissionregistrationv1.SideEffectClassNone && w.effects != admissionregistrationv1.SideEffectClassNoneOnDryRun {
		w.Called, w.Decision = No, chain.ByDryRun
		w.Why = fmt.Sprintf("it has side effects (sideEffects: %s), so it is not called for a dry run", w.effects)
		w.rejects(http.StatusBadRequest, fmt.Sprintf("admission webhook %q does not support dry run", w.hook.name))
	}
}

func (w *explainedWebhook) rejects(code int32, message string) {
	w.Rejects, w.code, w.message = true, code, message
}

// matching describes the rule that matched.
func (w *explainedWebhook) matching() string {
	var why string
	for _, p := range w.Predicates {
		if p.Predicate == chain.ByRules {
			why = p.Detail
		}
	}
	return why
}

// reject returns the rejection of the request, or nil. It covers only rejections for which the API server does not call
// the webhook at fault. reject marks later webhooks as not called.
func (t *explainer) reject(e *chain.Explanation, policies []Policy) *Rejection {
	by := func(mutating bool) int {
		return slices.IndexFunc(t.webhooks, func(w *explainedWebhook) bool { return w.mutating == mutating && w.Rejects })
	}
	rejected := func(from int, by *explainedWebhook, r *Rejection) *Rejection {
		for _, w := range t.webhooks[from:] {
			if w.Called != No {
				w.Called, w.Decision, w.Why, w.SentAs, w.Converted = No, chain.ByRejection, "the request is rejected before this webhook is called"+r.why(), nil, false
			}
			w.Rejects = w == by
		}
		return r
	}
	validating := slices.IndexFunc(t.webhooks, func(w *explainedWebhook) bool { return !w.mutating })
	if validating < 0 {
		validating = len(t.webhooks)
	}
	byPolicy, unsure := t.policyRejection(e, policies)
	switch r := e.Rejection; {
	case byPolicy != nil && byPolicy.Before == "mutating webhooks":
		return rejected(0, nil, byPolicy)
	case byPolicy == nil && r != nil && e.Early && !unsure:
		return rejected(0, nil, &Rejection{Before: "mutating webhooks", Code: r.Code, Message: r.Message})
	}
	if i := by(true); i >= 0 {
		w := t.webhooks[i]
		return rejected(i, w, &Rejection{By: w.hook.name, Before: "validating webhooks", Code: w.code, Message: w.message})
	}
	switch r := e.Rejection; {
	case byPolicy != nil:
		return rejected(validating, nil, byPolicy)
	case r != nil && !e.Early && !unsure:
		return rejected(validating, nil, &Rejection{Before: "validating webhooks", Code: r.Code, Message: r.Message})
	}
	i := by(false)
	if i < 0 {
		return nil
	}
	w := t.webhooks[i]
	r := &Rejection{By: w.hook.name, Before: "storage", Code: w.code, Message: w.message}
	if w.Decision != chain.ByDryRun { // the API server finds this error while it calls the other validating webhooks
		rejected(validating, w, r)
	}
	return r
}

func (r *Rejection) why() string {
	if r.By != "" {
		return ", because of " + r.By
	}
	return ": " + r.Message
}
