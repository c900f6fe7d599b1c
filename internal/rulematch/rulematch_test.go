// SPDX-License-Identifier: Apache-2.0

package rulematch_test

import (
	"math/rand/v2"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admitkit/admitkit/internal/rulematch"
)

// TestAgreesWithAPIServer compares Matches with the API server's matcher on random rules and requests.
func TestAgreesWithAPIServer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	matches := 0
	for range 20000 {
		rule := admissionregistrationv1.RuleWithOperations{
			Operations: list(r, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Connect, "*"),
			Rule: admissionregistrationv1.Rule{
				APIGroups: list(r, "", "apps", "*"), APIVersions: list(r, "v1", "v2", "*"),
				Resources: list(r, "pods", "pods/*", "pods/exec", "*/exec", "*", "*/*", "namespaces"),
			},
		}
		if r.IntN(2) == 0 {
			rule.Scope = &list(r, admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)[0]
		}
		resource := schema.GroupVersionResource{Group: list(r, "", "apps")[0], Version: list(r, "v1", "v2")[0], Resource: list(r, "pods", "namespaces", "deployments")[0]}
		sub, namespace := list(r, "", "exec", "status")[0], list(r, "", "default")[0]
		operation := list(r, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Connect)[0]
		attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, namespace, "a", resource, sub, admission.Operation(operation), nil, false, nil)
		oracle := rules.Matcher{Rule: rule, Attr: attributes}
		want := oracle.Matches()
		isNamespace := resource == schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		got := rulematch.Matches(rule, rulematch.Request{
			Operation: operation, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
			SubResource: sub, Namespaced: namespace != "" && !isNamespace,
		})
		if got != want {
			t.Fatalf("Matches is %t, the API server says %t: %+v, %s %v %q in %q", got, want, rule, operation, resource, sub, namespace)
		}
		if want {
			matches++
		}
	}
	if matches < 1000 {
		t.Errorf("only %d random rules matched", matches)
	}
}

// list returns one or two of the values.
func list[S any](r *rand.Rand, values ...S) []S {
	l := []S{values[r.IntN(len(values))]}
	if r.IntN(3) == 0 {
		l = append(l, values[r.IntN(len(values))])
	}
	return l
}
