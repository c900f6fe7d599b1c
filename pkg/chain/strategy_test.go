// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/chain"
)

func anything(h *admissionregistrationv1.ValidatingWebhook) {
	h.Rules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}}
}

// sentIn returns the request that a webhook received in a call.
func sentIn(t *testing.T, c chain.Call) any {
	t.Helper()
	var review struct{ Request any }
	if err := json.Unmarshal(c.Request, &review); err != nil {
		t.Fatal(err)
	}
	return review.Request
}

// Validating webhooks receive the fields that the strategies of built-in types set.
func TestStrategies(t *testing.T) {
	const template = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	for _, test := range []struct {
		resource, object, old string
		want                  map[string]string // JSON by path
	}{
		{
			"v1 pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}}}]},"status":{"phase":"Failed"}}`, "",
			map[string]string{"metadata.generation": "1", "status": `{"phase":"Pending","qosClass":"Guaranteed"}`},
		},
		{
			"v1 pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`, "",
			map[string]string{"status.qosClass": `"Burstable"`},
		},
		{
			"v1 namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"},"spec":{"finalizers":["example.com/own"]}}`, "",
			map[string]string{"metadata.generation": "missing", "status": `{"phase":"Active"}`, "spec.finalizers": `["example.com/own","kubernetes"]`, "metadata.labels": `{"kubernetes.io/metadata.name":"a"}`},
		},
		{
			"apps/v1 deployments", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","annotations":{"new":"yes"}},"spec":{"replicas":1,` + template + `}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","generation":4},"spec":{"replicas":1,` + template + `},"status":{"replicas":2}}`,
			map[string]string{"metadata.generation": "5", "status.replicas": "2"},
		},
		{
			"apps/v1 replicasets", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"a","annotations":{"new":"yes"}},"spec":{"replicas":1,` + template + `}}`,
			`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"a","generation":4},"spec":{"replicas":1,` + template + `}}`,
			map[string]string{"metadata.generation": "4"},
		},
		{
			"apps/v1 daemonsets", `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"a"},"spec":{` + template + `}}`,
			`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"a","generation":4,"annotations":{"deprecated.daemonset.template.generation":"3"}},"spec":{}}`,
			map[string]string{"metadata.generation": "5", "metadata.annotations": `{"deprecated.daemonset.template.generation":"4"}`},
		},
		{
			"batch/v1 jobs", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{` + template + `}}`, "",
			map[string]string{"metadata.generation": "1", "spec.template.metadata.labels.job-name": `"a"`},
		},
		{
			"v1 serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"secrets":[{"name":"s","kind":"Secret"}]}`, "",
			map[string]string{"secrets": `[{"name":"s"}]`},
		},
		{
			"v1 persistentvolumeclaims", `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"},"spec":{"dataSource":{"kind":"PersistentVolumeClaim","name":"b"}},"status":{"phase":"Bound"}}`, "",
			map[string]string{"status": "{}", "spec.dataSourceRef": `{"apiGroup":null,"kind":"PersistentVolumeClaim","name":"b"}`},
		},
	} {
		t.Run(test.resource, func(t *testing.T) {
			c := newChain(t, chain.Webhooks{
				Validating: validating(validatingHook("a.example.com", anything)), Handlers: map[string]http.Handler{"a.example.com": allowing()},
			})
			version, resource, _ := strings.Cut(test.resource, " ")
			group, v, ok := strings.Cut(version, "/")
			if !ok {
				group, v = "", version
			}
			req := chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: group, Version: v, Resource: resource}, Object: []byte(test.object)}
			if test.old != "" {
				req.Operation, req.OldObject = admissionv1.Update, []byte(test.old)
			}
			got := admit(t, c, req)
			if got.Rejection != nil {
				t.Fatal(got.Rejection.Message)
			}
			for path, want := range test.want {
				if s := at(sentIn(t, got.Calls[0]), "object."+path); s != want {
					t.Errorf("%s is %s, want %s", path, s, want)
				}
			}
		})
	}
}

// While a Namespace is deleted, a namespaceSelector sees the labels of the stored Namespace.
func TestDeletedNamespace(t *testing.T) {
	special := func(h *admissionregistrationv1.ValidatingWebhook) {
		anything(h)
		h.NamespaceSelector = selector("team", "special")
	}
	w := chain.Webhooks{Validating: validating(validatingHook("a.example.com", special)), Handlers: map[string]http.Handler{"a.example.com": allowing()}}
	for name, c := range map[string]*chain.Chain{
		"any":   newChain(t, w),
		"given": newChain(t, w, chain.Options{Namespaces: map[string]map[string]string{"a": {"team": "other"}}}),
	} {
		for team, want := range map[string]int{"special": 1, "other": 0} {
			got := admit(t, c, chain.Request{
				Operation: admissionv1.Delete, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"},
				OldObject: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","uid":"u","labels":{"team":%q}}}`, team),
			})
			if len(got.Calls) != want || got.Rejection != nil {
				t.Errorf("%s, team %s: the calls are %s, the rejection %v", name, team, trace(got), got.Rejection)
			}
			if want == 1 && at(sentIn(t, got.Calls[0]), "options.preconditions.uid") != `"u"` {
				t.Errorf("the options are %s", at(sentIn(t, got.Calls[0]), "options"))
			}
		}
	}
}

// The API server evaluates the selectors of a webhook on the object without the webhook's own patch.
func TestVerdictBeforeOwnPatch(t *testing.T) {
	fresh := func(h *admissionregistrationv1.MutatingWebhook) { h.ObjectSelector = selector("app", "web") }
	got := admit(t, newChain(t, chain.Webhooks{
		Mutating: mutating(mutatingHook("a.example.com", fresh), mutatingHook("b.example.com", fresh)),
		Handlers: map[string]http.Handler{"a.example.com": patching(always(`[{"op":"remove","path":"/metadata/labels/app"}]`)), "b.example.com": allowing()},
	}), createPod("web"))
	checkResult(t, got)
	if v := got.Webhooks; v[0].Reason != chain.Matches || v[1].Reason != chain.ByObjectSelector {
		t.Errorf("the verdicts are %+v", v)
	}
}

// A patch that changes the kind of the object is rejected.
func TestOtherKind(t *testing.T) {
	for kind, want := range map[string]string{"Other": `no kind "Other" is registered`, "ConfigMap": "converting"} {
		got := admit(t, newChain(t, chain.Webhooks{
			Mutating: mutating(mutatingHook("a.example.com")),
			Handlers: map[string]http.Handler{"a.example.com": patching(always(fmt.Sprintf(`[{"op":"replace","path":"/kind","value":%q}]`, kind)))},
		}), createPod("web"))
		if got.Rejection == nil || got.Rejection.Code != http.StatusInternalServerError || !strings.Contains(got.Rejection.Message, want) {
			t.Errorf("%s: the rejection is %v", kind, got.Rejection)
		}
	}
	got := admit(t, newChain(t, chain.Webhooks{
		Mutating: mutating(mutatingHook("a.example.com", func(h *admissionregistrationv1.MutatingWebhook) {
			h.Rules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}}
		})),
		Handlers: map[string]http.Handler{"a.example.com": patching(always(`[{"op":"replace","path":"/kind","value":"Other"}]`))},
	}), chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: "x.example.com", Version: "v1", Resource: "things"},
		Object: []byte(`{"apiVersion":"x.example.com/v1","kind":"Thing","metadata":{"name":"a"}}`)})
	if got.Rejection == nil || got.Rejection.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Rejection.Message, "must be Thing") {
		t.Errorf("custom resource: the rejection is %v", got.Rejection)
	}
}

// Fields that the API server resets have no manager in managedFields.
func TestStatusIsNotManaged(t *testing.T) {
	pod := createPod("web")
	pod.Object = []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Failed"}}`)
	got := admit(t, newChain(t, chain.Webhooks{}), pod)
	if text := string(got.Object); !strings.Contains(text, "f:spec") || strings.Contains(text, "f:status") {
		t.Errorf("the object is %s", text)
	}
}
