// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"maps"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	webhookplugin "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

var conditionCompiler = sync.OnceValue(func() plugincel.ConditionCompiler {
	return plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// nothingToConvert is for objects that are in the version asked for.
var nothingToConvert = sync.OnceValue(func() admission.ObjectInterfaces {
	return admission.NewObjectInterfacesFromScheme(runtime.NewScheme())
})

// surelyMeetsConditions evaluates the matchConditions for an example of the request. What it cannot
// evaluate, or what others decide, is not sure.
func (l *linter) surelyMeetsConditions(h *hook, r request) bool {
	if len(h.MatchConditions) == 0 {
		return true
	}
	for _, c := range h.MatchConditions {
		if strings.Contains(c.Expression, "authorizer") {
			return false
		}
	}
	object := r.example()
	var old runtime.Object
	if r.operation == update {
		old = object
	}
	attributes := admission.NewAttributesRecord(object, old, r.kind, r.namespace, r.name, r.GroupVersionResource, r.subresource,
		admission.Operation(r.operation), nil, false, &user.DefaultInfo{Name: r.user, Groups: r.groups})
	versioned, err := admission.NewVersionedAttributes(attributes, r.kind, nothingToConvert())
	if err != nil {
		return false
	}
	result := h.conditions().Match(context.Background(), versioned, nil, nil)
	return result.Error == nil && result.Matches
}

// conditions are compiled once: each pair of webhooks is asked about.
func (h *hook) conditions() matchconditions.Matcher {
	if h.matcher == nil {
		webhook := &admissionregistrationv1.MutatingWebhook{Name: h.Name, FailurePolicy: h.FailurePolicy, MatchConditions: h.MatchConditions}
		h.matcher = webhookplugin.NewMutatingWebhookAccessor(h.Name, h.of.Name, webhook).GetCompiledMatcher(conditionCompiler())
	}
	return h.matcher
}

func (r request) example() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, r.object)
	object.SetGroupVersionKind(r.kind)
	object.SetName(r.name)
	object.SetNamespace(r.namespace)
	object.SetLabels(r.labels.labels)
	return object
}
