// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// predicates evaluates the conditions under which the API server calls a webhook, and returns the reasons. The API
// server's own function, ShouldCallHook, returns no reasons.
type predicates struct {
	namespaces *namespace.Matcher
	objects    *object.Matcher
	authorizer authorizer.Authorizer
	// guessedAuthorizer means that Options.Authorizer is nil.
	guessedAuthorizer bool
}

// conditions compiles the matchConditions of all engines.
var conditions = sync.OnceValue(func() plugincel.ConditionCompiler {
	return plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// rejectedBefore is the detail of [ByRejection].
const rejectedBefore = "the request was already rejected"

// A reason is the predicate that decided whether a webhook is called. rejects is set if the evaluation of the predicate
// rejects the request.
type reason struct {
	decision Reason
	detail   string
	rejects  bool
}

// decide returns the first predicate that decides whether a webhook is called.
func (p *predicates) decide(ctx context.Context, h *inprocess.Hook, a admission.Attributes, o admission.ObjectInterfaces) reason {
	if rules.IsExemptAdmissionConfigurationResource(a) {
		return reason{decision: ByResource, detail: fmt.Sprintf("no webhook is called for a %s", a.GetKind().Kind)}
	}
	inNamespace, namespaceErr := p.namespaces.MatchNamespaceSelector(h, a)
	if !inNamespace && namespaceErr == nil {
		return reason{decision: ByNamespaceSelector, detail: fmt.Sprintf("the labels of namespace %q do not match", a.GetNamespace())}
	}
	selected, objectErr := p.objects.MatchObjectSelector(h, a)
	if !selected && objectErr == nil {
		return reason{decision: ByObjectSelector, detail: "the labels of neither the object nor the old object match"}
	}
	match, err := matchRules(h, a, o.GetEquivalentResourceMapper())
	switch {
	case err != nil:
		return reason{ByRules, err.Error(), true}
	case match == nil:
		return reason{decision: ByRules, detail: noRule(a)}
	case namespaceErr != nil:
		return reason{ByNamespaceSelector, namespaceErr.Error(), true}
	case objectErr != nil:
		return reason{ByObjectSelector, objectErr.Error(), true}
	case len(h.GetMatchConditions()) == 0:
		return reason{decision: Matches, detail: match.String()}
	}
	versioned, err := admission.NewVersionedAttributes(a, match.kind, o)
	if err != nil {
		return reason{ByMatchCondition, err.Error(), true}
	}
	switch result := h.GetCompiledMatcher(conditions()).Match(ctx, versioned, nil, p.authorizer); {
	case result.Error != nil:
		return reason{ByMatchCondition, result.Error.Error(), true}
	case result.Matches:
		return reason{decision: Matches, detail: match.String()}
	case result.FailedConditionName == "":
		return reason{decision: ByMatchCondition, detail: "a condition cannot be evaluated, and failurePolicy is Ignore"}
	default:
		return reason{decision: ByMatchCondition, detail: fmt.Sprintf("condition %q is false", result.FailedConditionName)}
	}
}

// A ruleMatch is the first rule of a webhook that covers a request, with the kind and the resource that the webhook
// receives.
type ruleMatch struct {
	rule       int
	attributes admission.Attributes // with the resource that the webhook receives
	kind       schema.GroupVersionKind
	resource   schema.GroupVersionResource
	equivalent bool // the resource is not the request's own
}

// String describes the match: "rules[0] is for CREATE of v1 pods".
func (m *ruleMatch) String() string {
	if m.equivalent {
		return fmt.Sprintf("rules[%d] is for the equivalent %s", m.rule, describe(m.attributes))
	}
	return fmt.Sprintf("rules[%d] is for %s", m.rule, describe(m.attributes))
}

// noRule is the detail of a webhook without a rule for a request.
func noRule(a admission.Attributes) string { return "no rule is for " + describe(a) }

// matchRules returns the first rule that covers the request, or nil if there is none.
func matchRules(h *inprocess.Hook, a admission.Attributes, mapper runtime.EquivalentResourceMapper) (*ruleMatch, error) {
	for i, rule := range h.GetRules() {
		if m := (rules.Matcher{Rule: rule, Attr: a}); m.Matches() {
			return &ruleMatch{rule: i, attributes: a, kind: a.GetKind(), resource: a.GetResource()}, nil
		}
	}
	if *h.GetMatchPolicy() != admissionregistrationv1.Equivalent {
		return nil, nil
	}
	equivalents := mapper.EquivalentResourcesFor(a.GetResource(), a.GetSubresource())
	for i, rule := range h.GetRules() {
		for _, equivalent := range equivalents {
			other := withResource{a, equivalent}
			if m := (rules.Matcher{Rule: rule, Attr: other}); equivalent == a.GetResource() || !m.Matches() {
				continue
			}
			kind := mapper.KindFor(equivalent, a.GetSubresource())
			if kind.Empty() {
				return nil, fmt.Errorf("unable to convert to %v: unknown kind", equivalent)
			}
			return &ruleMatch{rule: i, attributes: other, kind: kind, resource: equivalent, equivalent: true}, nil
		}
	}
	return nil, nil
}

// withResource are attributes with another resource.
type withResource struct {
	admission.Attributes
	resource schema.GroupVersionResource
}

// GetResource returns the other resource, instead of the resource of the request.
func (a withResource) GetResource() schema.GroupVersionResource { return a.resource }

// describe returns the operation and the resource of a request as text: "CREATE of v1 pods".
func describe(a admission.Attributes) string {
	resource := a.GetResource().Resource
	if sub := a.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	return fmt.Sprintf("%s of %s %s", a.GetOperation(), a.GetResource().GroupVersion(), resource)
}

// A selected is a webhook with the reason why the API server calls it, or why not.
type selected struct {
	hook *inprocess.Hook
	reason
}

// A selector finds out for each webhook whether the API server calls it for a request. It evaluates the predicates of a
// webhook only at the turn of that webhook, because earlier webhooks can change the object.
type selector struct {
	subject              *inprocess.Subject
	predicates           *predicates
	mutating, validating []*inprocess.Hook
	list                 []selected // in the order of the hooks
}

// selectMutating adds the first count mutating webhooks to the list, except those that are in it already.
func (s *selector) selectMutating(count int) {
	for len(s.list) < count {
		s.add(s.mutating[len(s.list)])
	}
}

// selectValidating adds the validating webhooks to the list. The mutating webhooks must be in it already.
func (s *selector) selectValidating() {
	for _, h := range s.validating[len(s.list)-len(s.mutating):] {
		s.add(h)
	}
}

func (s *selector) add(h *inprocess.Hook) {
	s.list = append(s.list, selected{h, s.predicates.decide(s.subject.Context, h, s.subject.Now(), s.subject.Interfaces())})
}
