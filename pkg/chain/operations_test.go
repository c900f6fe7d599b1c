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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/chain"
)

// sent admits req with one mutating and one validating webhook that match every request. It returns the request that
// each of them received, and the result.
func sent(t *testing.T, req chain.Request, options ...chain.Options) (m, v map[string]any, got *chain.Result) {
	t.Helper()
	all := []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"*"},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}}}}
	got = admit(t, newChain(t, chain.Webhooks{
		Mutating:   mutating(mutatingHook("m.example.com", func(h *admissionregistrationv1.MutatingWebhook) { h.Rules = all })),
		Validating: validating(validatingHook("v.example.com", func(h *admissionregistrationv1.ValidatingWebhook) { h.Rules = all })),
		Handlers:   map[string]http.Handler{"m.example.com": allowing(), "v.example.com": allowing()},
	}, options...), req)
	checkResult(t, got)
	for _, c := range got.Calls {
		var review map[string]map[string]any
		if err := json.Unmarshal(withoutTypeMeta(t, c.Request), &review); err != nil {
			t.Fatal(err)
		}
		if c.Mutating {
			m = review["request"]
		} else {
			v = review["request"]
		}
	}
	return m, v, got
}

func withoutTypeMeta(t *testing.T, review []byte) []byte {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(review, &all); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]json.RawMessage{"request": all["request"]})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// at returns, as JSON, the value at a path such as "metadata.name". It returns "missing" if there is no value.
func at(v any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return "missing"
		}
		if v, ok = m[name]; !ok {
			return "missing"
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestRequestThatIsSent(t *testing.T) {
	scheduled := []byte(strings.Replace(string(podJSON("web")), `"spec":{`, `"spec":{"nodeName":"n",`, 1))
	for _, test := range []struct {
		name string
		req  chain.Request
		want map[string]string // JSON by path; a prefix m. or v. restricts it to one webhook
	}{
		{"create", chain.Request{Operation: admissionv1.Create, Resource: pods, FieldManager: "me",
			Object: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":null}}`)},
			map[string]string{
				"operation": `"CREATE"`, "namespace": `"default"`, "name": `"web"`, "dryRun": "false", "oldObject": "null",
				"object.kind": `"Pod"`, "object.metadata.namespace": `"default"`, "m.object.status": "{}",
				"m.object.metadata.uid": "missing", "m.object.metadata.creationTimestamp": "missing",
				"options":     `{"apiVersion":"meta.k8s.io/v1","fieldManager":"me","kind":"CreateOptions"}`,
				"requestKind": `{"group":"","kind":"Pod","version":"v1"}`, "resource": `{"group":"","resource":"pods","version":"v1"}`,
			}},
		{"generateName", chain.Request{Operation: admissionv1.Create, Resource: pods, DryRun: true,
			Object: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-"},"spec":{"containers":[]}}`)},
			map[string]string{"m.name": "missing", "m.object.metadata.name": "missing", "dryRun": "true", "options.dryRun": `["All"]`}},
		{"update", chain.Request{Operation: admissionv1.Update, Resource: pods, Object: podJSON("web"), OldObject: podJSON("web")},
			map[string]string{"operation": `"UPDATE"`, "oldObject.metadata.name": `"web"`, "options.kind": `"UpdateOptions"`}},
		{"status", chain.Request{Operation: admissionv1.Update, Resource: pods, SubResource: "status", Object: podJSON("web"), OldObject: podJSON("web")},
			map[string]string{"subResource": `"status"`, "requestSubResource": `"status"`}},
		{"delete", chain.Request{Operation: admissionv1.Delete, Resource: pods, OldObject: scheduled},
			map[string]string{"operation": `"DELETE"`, "object": "null", "oldObject.metadata.name": `"web"`, "name": `"web"`, "namespace": `"default"`,
				"options": `{"apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":30,"kind":"DeleteOptions"}`}},
		{"connect", chain.Request{Operation: admissionv1.Connect, Resource: pods, SubResource: "exec", Namespace: "default", Name: "web",
			Object: []byte(`{"apiVersion":"v1","kind":"PodExecOptions","command":["ls"]}`)},
			map[string]string{"operation": `"CONNECT"`, "object": `{"apiVersion":"v1","command":["ls"],"kind":"PodExecOptions"}`, "options": "null",
				"kind.kind": `"PodExecOptions"`, "oldObject": "null", "subResource": `"exec"`, "name": `"web"`}},
		{"eviction", chain.Request{Operation: admissionv1.Create, Resource: pods, SubResource: "eviction",
			Object: []byte(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web","namespace":"default"}}`)},
			map[string]string{"kind.kind": `"Eviction"`, "kind.group": `"policy"`, "resource.resource": `"pods"`, "object.metadata.uid": "missing"}},
		{"scale", chain.Request{Operation: admissionv1.Update, Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, SubResource: "scale",
			Object:    []byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":2}}`),
			OldObject: []byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":1}}`)},
			map[string]string{"kind.kind": `"Scale"`, "object.spec.replicas": "2", "oldObject.spec.replicas": "1"}},
		{"namespace", chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"},
			Object: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}}`)},
			map[string]string{"namespace": `"team"`, "object.metadata.namespace": "missing"}},
		{"cluster scoped", chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "nodes"},
			Object: []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`)},
			map[string]string{"namespace": "missing"}},
		{"unknown kind", chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
			Object: []byte(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w","namespace":"team"},"spec":{"odd":1.5,"big":12345678901}}`)},
			map[string]string{"object.spec": `{"big":12345678901,"odd":1.5}`, "namespace": `"team"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, v, got := sent(t, test.req)
			if got.Rejection != nil {
				t.Fatal(got.Rejection.Message)
			}
			for path, want := range test.want {
				rest, onlyMutating := strings.CutPrefix(path, "m.")
				if s := at(m, rest); s != want {
					t.Errorf("the mutating webhook's %s is %s, want %s", rest, s, want)
				}
				if s := at(v, rest); !onlyMutating && s != want {
					t.Errorf("the validating webhook's %s is %s, want %s", rest, s, want)
				}
			}
			if test.req.Operation == admissionv1.Create && test.req.SubResource == "" {
				if uid := at(v, "object.metadata.uid"); len(uid) < 10 || at(v, "name") == "missing" {
					t.Errorf("the validating webhook's uid is %s, its name %s", uid, at(v, "name"))
				}
			}
			if at(m, "uid") == at(v, "uid") {
				t.Error("both calls have the same uid")
			}
		})
	}
}

// TestDeleteAtOnce deletes a Pod without a grace period. The API server does this in two steps, and calls the webhooks
// in both.
func TestDeleteAtOnce(t *testing.T) {
	_, v, got := sent(t, chain.Request{Operation: admissionv1.Delete, Resource: pods, OldObject: podJSON("web")})
	if trace(got) != "m0 v0 m0 v0" {
		t.Errorf("the calls are %s", trace(got))
	}
	if at(v, "oldObject.metadata.deletionTimestamp") == "missing" || at(v, "options.gracePeriodSeconds") != "0" {
		t.Errorf("the last call is for %s", at(v, "oldObject"))
	}
}

// TestDeleteAtOnceWithoutMutatingWebhooks deletes a Pod in two steps. Each step must call all validating webhooks in
// the order of their configurations.
func TestDeleteAtOnceWithoutMutatingWebhooks(t *testing.T) {
	c := newChain(t, chain.Webhooks{
		Validating: validating(validatingHook("a.example.com"), validatingHook("b.example.com")),
		Handlers:   map[string]http.Handler{"a.example.com": allowing(), "b.example.com": allowing()},
	})
	for dryRun, want := range map[bool]string{false: "a0 b0 a0 b0", true: "a0 b0"} {
		got := admit(t, c, chain.Request{Operation: admissionv1.Delete, Resource: pods, OldObject: podJSON("web"), DryRun: dryRun})
		if trace(got) != want {
			t.Errorf("the calls are %s, want %s", trace(got), want)
		}
	}
}

func TestOperationsAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		req  chain.Request
		code int32
		text string
	}{
		{"other version", chain.Request{Operation: admissionv1.Create, Resource: pods, Object: []byte(`{"apiVersion":"v2","kind":"Pod"}`)}, 400, "does not match the expected API version (v1)"},
		{"wrong type", chain.Request{Operation: admissionv1.Create, Resource: pods, Object: []byte(`{"apiVersion":"v1","kind":"Pod","spec":3}`)}, 400, "cannot be handled as a Pod"},
		{"other namespace", chain.Request{Operation: admissionv1.Create, Resource: pods, Namespace: "other", Object: podJSON("web")}, 400, "does not match the namespace sent on the request"},
		{"other name", chain.Request{Operation: admissionv1.Update, Resource: pods, Name: "db", Object: podJSON("web"), OldObject: podJSON("db")}, 400, "does not match the name on the URL"},
		{"no name", chain.Request{Operation: admissionv1.Create, Resource: pods, Object: []byte(`{"apiVersion":"v1","kind":"Pod"}`)}, 422, "name or generateName is required"},
		{"conflict", chain.Request{Operation: admissionv1.Update, Resource: pods, Object: versioned("1"), OldObject: versioned("2")}, 409, "the object has been modified"},
		{"dry-run of connect", chain.Request{Operation: admissionv1.Connect, Resource: pods, SubResource: "exec", DryRun: true,
			Object: []byte(`{"apiVersion":"v1","kind":"PodExecOptions"}`)}, 400, "dryRun is not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := admit(t, newChain(t, chain.Webhooks{}), test.req)
			if r := got.Rejection; r == nil || r.Code != test.code || !strings.Contains(r.Message, test.text) {
				t.Errorf("the rejection is %+v", r)
			}
		})
	}
}

func versioned(version string) []byte {
	return []byte(strings.Replace(string(podJSON("web")), `"name":"web"`, `"name":"web","resourceVersion":"`+version+`"`, 1))
}

func TestRequestsThatAreNone(t *testing.T) {
	c := newChain(t, chain.Webhooks{})
	for _, req := range []chain.Request{
		{}, {Operation: "GET", Resource: pods}, {Operation: admissionv1.Create, Object: podJSON("web")}, {Operation: admissionv1.Create, Resource: pods},
		{Operation: admissionv1.Update, Resource: pods, Object: podJSON("web")}, {Operation: admissionv1.Delete, Resource: pods},
		{Operation: admissionv1.Delete, Resource: pods, Object: podJSON("web")}, {Operation: admissionv1.Delete, Resource: pods, OldObject: []byte("{")},
	} {
		if got, err := c.Admit(t.Context(), req); err == nil {
			t.Errorf("%+v: got %+v", req, got)
		}
	}
}

func TestWarningsAndAnnotations(t *testing.T) {
	answer := func(key, value string, warnings ...string) handlerFunc {
		return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings, AuditAnnotations: map[string]string{key: value}}
		}
	}
	got := admit(t, newChain(t, chain.Webhooks{
		Mutating:   mutating(mutatingHook("a.example.com"), mutatingHook("b.example.com")),
		Validating: validating(validatingHook("c.example.com")),
		Handlers: map[string]http.Handler{
			"a.example.com": answer("k", "1", "first", "twice", "", "new\nline"), "b.example.com": answer("bad/key", "2", "twice", `"quoted"`),
			"c.example.com": answer("k", "3", strings.Repeat("x", 300)),
		},
	}), chain.Request{Operation: admissionv1.Create, Resource: pods,
		Object: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"odd":1,"containers":[]}}`)})
	if got.Rejection != nil {
		t.Fatal(got.Rejection.Message)
	}
	want := []string{`unknown field "spec.odd"`, "first", "twice", `"quoted"`, strings.Repeat("x", 300)}
	if fmt.Sprint(got.Warnings) != fmt.Sprint(want) {
		t.Errorf("the warnings are %q", got.Warnings)
	}
	var keys []string
	for _, a := range got.Annotations {
		keys = append(keys, a.Key+" "+a.Level)
	}
	if s := strings.Join(keys, ", "); s != "a.example.com/k Metadata, mutation.webhook.admission.k8s.io/round_0_index_0 Metadata, "+
		"mutation.webhook.admission.k8s.io/round_0_index_1 Metadata, c.example.com/k Metadata" {
		t.Errorf("the annotations are %s", s)
	}
}

func TestDefaultingAndValidation(t *testing.T) {
	var olds []bool
	options := chain.Options{
		Default: func(obj runtime.Object) {
			if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.RestartPolicy == "" {
				pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
		},
		Validate: func(obj, old runtime.Object) field.ErrorList {
			olds = append(olds, old != nil)
			if obj.(*corev1.Pod).Labels["seen"] == "yes" {
				return field.ErrorList{field.Forbidden(field.NewPath("metadata", "labels"), "never seen")}
			}
			return nil
		},
	}
	c := newChain(t, chain.Webhooks{
		Mutating:   mutating(mutatingHook("a.example.com"), mutatingHook("b.example.com")),
		Validating: validating(validatingHook("c.example.com")),
		Handlers: map[string]http.Handler{
			"a.example.com": patching(always(`[{"op":"remove","path":"/spec/restartPolicy"}]`)),
			"b.example.com": patching(func(req *admissionv1.AdmissionRequest) string {
				if !strings.Contains(string(req.Object.Raw), `"restartPolicy":"Always"`) {
					t.Errorf("the second webhook was sent %s", req.Object.Raw)
				}
				return addLabel("seen", "yes")(req)
			}),
			"c.example.com": allowing(),
		},
	}, options)
	for _, req := range []chain.Request{createPod("web"), {Operation: admissionv1.Update, Resource: pods, Object: podJSON("web"), OldObject: podJSON("web")}} {
		got := admit(t, c, req)
		checkResult(t, got)
		if r := got.Rejection; r == nil || r.Code != 422 || r.Message != `Pod "web" is invalid: metadata.labels: Forbidden: never seen` {
			t.Errorf("%s: the rejection is %+v", req.Operation, r)
		}
		if v := got.Webhooks[2]; trace(got) != "a0 b0" || v.Reason != chain.ByRejection {
			t.Errorf("%s: the calls are %s, the validating webhook's verdict %+v", req.Operation, trace(got), v)
		}
	}
	if fmt.Sprint(olds) != "[false true]" {
		t.Errorf("old objects: %v", olds)
	}
}
