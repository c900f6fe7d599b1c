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

// predicates say why a webhook is called or not. They ask what the API server's ShouldCallHook
// asks, which gives no reasons.
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
const rejectedBefore = "the request had been rejected by then"

// A reason is the predicate that decided about a webhook. rejects is set if evaluating it rejects the request.
type reason struct {
	decision Reason
	detail   string
	rejects  bool
}

func (p *predicates) decide(ctx context.Context, h *inprocess.Hook, a admission.Attributes, o admission.ObjectInterfaces) reason {
	if rules.IsExemptAdmissionConfigurationResource(a) {
		return reason{decision: ByResource, detail: fmt.Sprintf("no webhook is asked about a %s", a.GetKind().Kind)}
	}
	inNamespace, namespaceErr := p.namespaces.MatchNamespaceSelector(h, a)
	if !inNamespace && namespaceErr == nil {
		return reason{decision: ByNamespaceSelector, detail: fmt.Sprintf("the labels of namespace %q do not match", a.GetNamespace())}
	}
	selected, objectErr := p.objects.MatchObjectSelector(h, a)
	if !selected && objectErr == nil {
		return reason{decision: ByObjectSelector, detail: "the labels of neither the object nor the old object match"}
	}
	kind, _, rule, err := matchRules(h, a, o.GetEquivalentResourceMapper())
	switch {
	case err != nil:
		return reason{ByRules, err.Error(), true}
	case rule == "":
		return reason{decision: ByRules, detail: "no rule is for " + describe(a)}
	case namespaceErr != nil:
		return reason{ByNamespaceSelector, namespaceErr.Error(), true}
	case objectErr != nil:
		return reason{ByObjectSelector, objectErr.Error(), true}
	case len(h.GetMatchConditions()) == 0:
		return reason{decision: Matches, detail: rule}
	}
	versioned, err := admission.NewVersionedAttributes(a, kind, o)
	if err != nil {
		return reason{ByMatchCondition, err.Error(), true}
	}
	switch result := h.GetCompiledMatcher(conditions()).Match(ctx, versioned, nil, p.authorizer); {
	case result.Error != nil:
		return reason{ByMatchCondition, result.Error.Error(), true}
	case result.Matches:
		return reason{decision: Matches, detail: rule}
	case result.FailedConditionName == "":
		return reason{decision: ByMatchCondition, detail: "a condition cannot be evaluated, which failurePolicy Ignore forgives"}
	default:
		return reason{decision: ByMatchCondition, detail: fmt.Sprintf("condition %q is false", result.FailedConditionName)}
	}
}

// matchRules finds the first rule that matches, as text, and the kind and the resource that the
// webhook is sent.
func matchRules(h *inprocess.Hook, a admission.Attributes, mapper runtime.EquivalentResourceMapper) (kind schema.GroupVersionKind, resource schema.GroupVersionResource, rule string, err error) {
	for i, rule := range h.GetRules() {
		if m := (rules.Matcher{Rule: rule, Attr: a}); m.Matches() {
			return a.GetKind(), a.GetResource(), fmt.Sprintf("rules[%d] is for %s", i, describe(a)), nil
		}
	}
	if *h.GetMatchPolicy() != admissionregistrationv1.Equivalent {
		return kind, resource, "", nil
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
				return kind, resource, "", fmt.Errorf("unable to convert to %v: unknown kind", equivalent)
			}
			return kind, equivalent, fmt.Sprintf("rules[%d] is for the equivalent %s", i, describe(other)), nil
		}
	}
	return kind, resource, "", nil
}

type withResource struct {
	admission.Attributes
	resource schema.GroupVersionResource
}

func (a withResource) GetResource() schema.GroupVersionResource { return a.resource }

func describe(a admission.Attributes) string {
	resource := a.GetResource().Resource
	if sub := a.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	return fmt.Sprintf("%s of %s %s", a.GetOperation(), a.GetResource().GroupVersion(), resource)
}

// A selected is a hook with the reason why it was selected or not.
type selected struct {
	hook *inprocess.Hook
	reason
}

// A selector finds out for each webhook whether it is selected for a request. It does so when it is the webhook's turn,
// because earlier webhooks can change the object.
type selector struct {
	subject              *inprocess.Subject
	predicates           *predicates
	mutating, validating []*inprocess.Hook
	list                 []selected // in the order of the hooks
}

// selectMutating decides about the first count mutating webhooks, unless it was done before.
func (s *selector) selectMutating(count int) {
	for len(s.list) < count {
		s.add(s.mutating[len(s.list)])
	}
}

// selectValidating decides about the validating webhooks, after all mutating webhooks.
func (s *selector) selectValidating() {
	for _, h := range s.validating[len(s.list)-len(s.mutating):] {
		s.add(h)
	}
}

func (s *selector) add(h *inprocess.Hook) {
	s.list = append(s.list, selected{h, s.predicates.decide(s.subject.Context, h, s.subject.Now(), s.subject.Interfaces())})
}
