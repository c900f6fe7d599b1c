// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"regexp"
	"slices"
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

// nothingToConvert has no converters, because all objects already have the version of the request.
var nothingToConvert = sync.OnceValue(func() admission.ObjectInterfaces {
	return admission.NewObjectInterfacesFromScheme(runtime.NewScheme())
})

// surelyMeetsConditions reports whether all matchConditions are certainly true. It returns false if a condition depends
// on something that the linter does not know.
func (l *linter) surelyMeetsConditions(h *webhook, r request) bool {
	for _, c := range h.MatchConditions {
		if r.isUnknown(c.Expression) {
			return false
		}
	}
	if len(h.MatchConditions) == 0 {
		return true
	}
	return !slices.ContainsFunc(r.users, func(user string) bool { return !h.meets(r, user) })
}

func (h *webhook) meets(r request, name string) bool {
	object := r.example()
	var old runtime.Object
	if r.operation == update {
		old = object
	}
	attributes := admission.NewAttributesRecord(object, old, r.kind, r.namespace, r.name, r.GroupVersionResource, r.subresource,
		admission.Operation(r.operation), nil, false, &user.DefaultInfo{Name: name, Groups: memberOf(name)})
	versioned, err := admission.NewVersionedAttributes(attributes, r.kind, nothingToConvert())
	if err != nil {
		return false
	}
	result := h.conditions().Match(context.Background(), versioned, nil, nil)
	return result.Error == nil && result.Matches
}

var (
	// presence matches tests for null and missing fields. Their results are known, because each request in this package
	// has an object, and each UPDATE has an old object.
	presence = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(object|oldObject) *[!=]= *null\b|\bhas\(object\.(metadata|spec)\)`)
	})
	objectPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bobject((?:\.\??\w+)*)`) })
	oldObject  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\boldObject\b`) })
	// ofRequest matches fields of a request that the linter does not know.
	ofRequest = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\brequest\.\??(name|uid|options|dryRun)\b`) })
)

// isUnknown reports whether an expression uses something that is not known about the request. It searches the text of
// the expression, so it can return true when the expression does not really use it.
func (r request) isUnknown(expression string) bool {
	expression = presence().ReplaceAllString(expression, "true")
	switch {
	case strings.Contains(expression, "authorizer"),
		strings.Contains(expression, "userInfo") && slices.Contains(r.users, unknownUser),
		r.operation != create && oldObject().MatchString(expression),
		strings.HasSuffix(r.name, "-1") && ofRequest().MatchString(expression): // an invented name
		return true
	}
	for _, m := range objectPath().FindAllStringSubmatch(expression, -1) {
		if !r.knows(strings.Split(strings.ReplaceAll(m[1], "?", ""), ".")[1:]) {
			return true
		}
	}
	return false
}

// knows reports whether a field of the object certainly has the same value as in r.object, a Pod template. Defaults and
// admission can set missing fields and extend lists.
func (r request) knows(path []string) bool {
	if r.object == nil || len(path) < 2 {
		return false
	}
	switch spec, _ := r.object["spec"].(map[string]any); path[0] {
	case "metadata":
		return slices.Contains([]string{"labels", "annotations", "namespace"}, path[1])
	case "spec":
		switch spec[path[1]].(type) {
		case nil:
			return slices.Contains([]string{"hostNetwork", "hostPID", "hostIPC"}, path[1])
		case []any, map[string]any:
			return false
		}
		return true
	}
	return false
}

// conditions returns the compiled matchConditions.
func (h *webhook) conditions() matchconditions.Matcher {
	if h.matcher == nil {
		webhook := &admissionregistrationv1.MutatingWebhook{Name: h.Name, FailurePolicy: h.FailurePolicy, MatchConditions: h.MatchConditions}
		h.matcher = webhookplugin.NewMutatingWebhookAccessor(h.Name, h.of.Name, webhook).GetCompiledMatcher(conditionCompiler())
	}
	return h.matcher
}

func (r request) example() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range runtime.DeepCopyJSON(r.object) {
		object.Object[key] = value
	}
	object.SetGroupVersionKind(r.kind)
	object.SetName(r.name)
	object.SetNamespace(r.namespace)
	object.SetLabels(r.labels.labels)
	return object
}
