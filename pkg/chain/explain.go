// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Explanation says which webhooks an API server would ask about a request, and why, without
// asking any: as if each allowed it and changed nothing.
type Explanation struct {
	// Webhooks are in the order in which the API server comes to them, mutating ones first.
	Webhooks []Explained
	// Rejection is what the API server itself answers, or nil. It comes before the validating
	// webhooks and, if Early, before all webhooks.
	Rejection *metav1.Status
	Early     bool
	// Twice is set for a deletion that the API server does in two steps, and asks about twice.
	Twice bool
}

// Explained is what is to be said of one webhook.
type Explained struct {
	Configuration, Webhook string
	Mutating               bool
	// Index is the webhook's place among all webhooks of its sort.
	Index int
	// Predicates are all that the API server looks at before it calls the webhook, in its order. It
	// stops at the first that does not hold; here those after it are told too, except that
	// conditions are only there if a rule matches.
	Predicates []Predicate
	// Kind and Resource are those that the webhook would be sent: other versions than the request's
	// under matchPolicy Equivalent. They are empty if no rule matches.
	Kind     metav1.GroupVersionKind
	Resource metav1.GroupVersionResource
}

// A Predicate is one of those on which a webhook's call depends.
type Predicate struct {
	// Reason is [ByResource], [ByNamespaceSelector], [ByObjectSelector], [ByRules] or
	// [ByMatchCondition].
	Reason Reason
	// Condition is the name of a matchCondition.
	Condition string
	Result    PredicateResult
	// Detail says why, in a sentence: the labels, the rule, the error.
	Detail string
}

// An PredicateResult is what a predicate says.
type PredicateResult string

// The answers.
const (
	Holds PredicateResult = "Holds"
	Fails PredicateResult = "Fails"
	// Errs is a predicate that the API server cannot evaluate. This rejects the request, except for
	// conditions under failurePolicy Ignore, which then count as false.
	Errs PredicateResult = "Errs"
	// Unknown is what an API server could tell, but not this engine.
	Unknown PredicateResult = "Unknown"
)

// Explain says what the webhooks' predicates say to a request.
func (c *Chain) Explain(ctx context.Context, req Request) (*Explanation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	asked, refusal, err := c.objects.decode(req)
	if err != nil {
		return nil, fmt.Errorf("cannot make a request of this: %w", err)
	}
	r := &run{asked: asked, chain: c, open: map[*hook]*call{}, seen: map[string]bool{}, explanation: &Explanation{}}
	defer r.holdNamespace()()
	_, err = withWarnings(ctx, func(ctx context.Context) error {
		if refusal != nil {
			return refusal
		}
		return r.admit(ctx)
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case refusal != nil && asked.object == nil && req.Object != nil:
		return nil, fmt.Errorf("cannot make a request of this: %w", refusal)
	}
	r.explainRest(ctx)
	if err != nil {
		r.explanation.Rejection = r.rejection(err)
	}
	return r.explanation, nil
}

// explain is what an explanation has of either sort of webhooks in place of their calls.
func (r *run) explain(hooks []*hook) {
	if r.step > 0 {
		r.explanation.Twice = true
		return
	}
	r.explained++
	for _, h := range hooks {
		r.explanation.Webhooks = append(r.explanation.Webhooks, r.chain.predicates.explain(r.ctx, h, r.now(), interfaces{r.chain.objects, r}))
	}
}

// explainRest explains the webhooks that the API server does not come to.
func (r *run) explainRest(ctx context.Context) {
	if r.ctx == nil {
		r.ctx = ctx
	}
	if r.explained == 0 {
		r.explanation.Early = true
		if r.attributes == nil {
			r.attributes = r.record(r.object, r.old)
		}
		r.explain(r.chain.mutating)
	}
	if r.explained == 1 {
		r.explain(r.chain.validating)
	}
}
