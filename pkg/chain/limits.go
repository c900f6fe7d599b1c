// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"reflect"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// limits tell what this run was done without, if it may matter.
func (r *run) limits() []string {
	var limits []string
	add := func(format string, args ...any) { limits = append(limits, fmt.Sprintf(format, args...)) }
	if r.object != nil && r.operation != admission.Connect {
		if _, ok := r.object.(runtime.Unstructured); ok {
			r.customLimits(add)
		} else if builtIn().Recognizes(r.kind) {
			r.builtInLimits(add)
		}
	}
	for _, v := range r.verdicts {
		if v.decision == ByRules {
			r.equivalentLimits(v.hook, add)
		}
		if r.chain.guessedAuthorizer && usesAuthorizer(v.hook) {
			add("The conditions of %s ask the authorizer, and no WithAuthorizer was given: members of system:masters may do everything and others nothing.", v.hook.GetName())
		}
	}
	return limits
}

func (r *run) customLimits(add func(string, ...any)) {
	if r.customVersion() != nil {
		return
	}
	add("No schema of %s is known: it is neither pruned nor defaulted nor validated. Give its CustomResourceDefinition with WithCRDs.", r.kind.Kind)
}

func (r *run) builtInLimits(add func(string, ...any)) {
	if r.chain.defaulter == nil {
		add("No defaults of %s are filled in, neither at first nor after patches: see WithDefaulting.", r.kind.Kind)
	}
	if r.chain.validator == nil {
		add("Nothing of %s but its metadata is validated: see WithValidation.", r.kind.Kind)
	}
	if r.SubResource != "" {
		add("What %s/%s itself checks and changes is left out.", r.resource.Resource, r.SubResource)
	} else if reflect.Indirect(reflect.ValueOf(r.object)).FieldByName("Status").IsValid() {
		add("Status and generation of %s are not reset before validating webhooks are called.", r.kind.Kind)
	}
	if plugins := inTreePlugins[r.resource.Resource]; plugins != "" && r.SubResource == "" && len(r.chain.plugins) == 0 {
		add("In-tree admission plugins such as %s, which change or refuse %s, do not run: see WithPlugin.", plugins, r.resource.Resource)
	}
}

// inTreePlugins are those that are on by default and may change an object.
var inTreePlugins = map[string]string{
	"pods":                   "ServiceAccount, Priority, LimitRanger and DefaultTolerationSeconds",
	"persistentvolumeclaims": "DefaultStorageClass",
	"ingresses":              "DefaultIngressClass",
}

// equivalentLimits are about a webhook that an API server would call with another version.
func (r *run) equivalentLimits(h *hook, add func(string, ...any)) {
	if *h.GetMatchPolicy() != admissionregistrationv1.Equivalent {
		return
	}
	for _, other := range r.notConverted() {
		for _, rule := range h.GetRules() {
			if m := (rules.Matcher{Rule: rule, Attr: withResource{r.attributes, other}}); m.Matches() {
				add("%s would be called with the equivalent %s %s, to which %s cannot be converted here.", h.GetName(), other.GroupVersion(), other.Resource, r.kind)
				return
			}
		}
	}
}

func usesAuthorizer(h *hook) bool {
	for _, c := range h.GetMatchConditions() {
		if strings.Contains(c.Expression, "authorizer") {
			return true
		}
	}
	return false
}
