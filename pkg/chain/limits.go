// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// A limiter is a function that adds a [Limit] with a formatted message to a Result.
type limiter func(code LimitCode, format string, args ...any)

// A limited collects the limits of one request: where the result of this engine can differ from that of a real API
// server.
type limited struct {
	*inprocess.DecodedRequest
	engine *engine
}

// limitsOf returns the differences from what a real API server would have done with a request.
func limitsOf(e *engine, c *caller) []Limit {
	r := limited{c.subject.DecodedRequest, e}
	var limits []Limit
	add := func(code LimitCode, format string, args ...any) {
		limits = append(limits, Limit{code, fmt.Sprintf(format, args...)})
	}
	if r.Object != nil && r.Operation != admission.Connect {
		if _, ok := r.Object.(runtime.Unstructured); ok {
			r.customLimits(add)
		} else if strategy.BuiltIn().Recognizes(r.Kind) {
			r.builtInLimits(add)
		}
	}
	for _, v := range c.selector.list {
		if v.decision == ByRules {
			r.equivalentLimits(v.hook, c.subject.Attributes, add)
		}
		if r.engine.guessedAuthorizer && usesAuthorizer(v.hook) {
			add(NoAuthorizer, "A matchCondition of %s uses the authorizer, and Options.Authorizer is nil: members of system:masters may do everything and other users nothing.", v.hook.GetName())
		}
	}
	return limits
}

func (r limited) customLimits(add limiter) {
	if r.engine.objects.CustomVersion(r.Kind) != nil {
		return
	}
	add(NoSchema, "The schema of %s is unknown, so the object is not pruned, defaulted or validated. Add its CustomResourceDefinition to Options.CRDs.", r.Kind.Kind)
}

func (r limited) builtInLimits(add limiter) {
	if r.engine.options.Default == nil {
		add(NoDefaults, "The defaults of %s are not set, neither on decoding nor after patches. Set Options.Default.", r.Kind.Kind)
	}
	if r.engine.options.Validate == nil {
		add(NoValidation, "Only the metadata of %s is validated. Set Options.Validate.", r.Kind.Kind)
	}
	if r.SubResource != "" && r.SubResource != "status" {
		add(NoSubresourceLogic, "The checks and changes that only %s/%s makes are left out.", r.Resource.Resource, r.SubResource)
	} else if what := r.notPrepared(); what != "" {
		add(FieldsNotSet, "%s are not set before validating webhooks are called.", what)
	}
	if plugins := inTreePlugins[r.Resource.Resource]; plugins != "" && r.SubResource == "" && len(r.engine.options.Plugins) == 0 {
		add(NoPlugins, "In-tree admission plugins such as %s, which change or reject %s, do not run. Add them to Options.Plugins.", plugins, r.Resource.Resource)
	}
}

// notPrepared names the fields that the API server sets between mutating and validating webhooks, but this engine does not.
func (r limited) notPrepared() string {
	switch o := r.Object.(type) {
	case *corev1.Service:
		return "Addresses and ports of a Service"
	case *corev1.Pod:
		if usesLabelKeys(&o.Spec) {
			return "Label selectors of the matchLabelKeys and mismatchLabelKeys of a Pod"
		}
	}
	if !strategy.Has(r.Kind) && strategy.Field(r.Object, "Status").IsValid() {
		return fmt.Sprintf("Status and generation of a %s", r.Kind.Kind)
	}
	return ""
}

func usesLabelKeys(spec *corev1.PodSpec) bool {
	for _, c := range spec.TopologySpreadConstraints {
		if len(c.MatchLabelKeys) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(affinityTerms(spec.Affinity), func(t corev1.PodAffinityTerm) bool {
		return len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0
	})
}

func affinityTerms(a *corev1.Affinity) []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if a != nil && a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a != nil && a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	return terms
}

// inTreePlugins names the plugins that are enabled by default and can change an object, by resource.
var inTreePlugins = map[string]string{
	"pods":                   "ServiceAccount, Priority, LimitRanger and DefaultTolerationSeconds",
	"persistentvolumeclaims": "DefaultStorageClass",
	"ingresses":              "DefaultIngressClass",
}

// equivalentLimits adds a limit if an API server would call the webhook with a version to which this engine cannot
// convert the object.
func (r limited) equivalentLimits(h *inprocess.Hook, a admission.Attributes, add limiter) {
	if *h.GetMatchPolicy() != admissionregistrationv1.Equivalent {
		return
	}
	for _, other := range r.engine.objects.NotConverted(r.Resource, r.Kind) {
		for _, rule := range h.GetRules() {
			if m := (rules.Matcher{Rule: rule, Attr: withResource{a, other}}); m.Matches() {
				add(NotConverted, "The API server would call %s with the equivalent %s %s. This engine cannot convert %s to that.", h.GetName(), other.GroupVersion(), other.Resource, r.Kind)
				return
			}
		}
	}
}

func usesAuthorizer(h *inprocess.Hook) bool {
	for _, c := range h.GetMatchConditions() {
		if strings.Contains(c.Expression, "authorizer") {
			return true
		}
	}
	return false
}
