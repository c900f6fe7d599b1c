// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/chain/internal/realserver"
)

// valueAt returns the value at a path of keys in a JSON document, as text.
func valueAt(t testing.TB, raw []byte, keys ...string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return fmt.Sprint(v)
}

func testUpdate(t *testing.T, c sharedServer) {
	rules := rulesFor("", "pods", "*")
	engine := c.connect(t, configured("update.example.com", map[string]http.Handler{
		"a.update.example.com": patching(`[{"op":"add","path":"/metadata/annotations","value":{"a":"was-here"}}]`),
		"v.update.example.com": responder(allow),
	}, mutatingHook("a.update.example.com", rules), validatingHook("v.update.example.com", rules)))
	old := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"12"},"spec":{"containers":[{"name":"app","image":"app:1"}]},
		"status":{"phase":"Running","podIP":"10.0.0.1"}}`)
	object := []byte(strings.Replace(string(old), `"name":"a",`, `"name":"a","labels":{"new":"yes"},`, 1))
	for _, dryRun := range []bool{true, false} {
		result := admit(t, engine, Request{Operation: admissionv1.Update, Resource: pods, Namespace: "update", Object: object, OldObject: old, DryRun: dryRun})
		want := []string{"a.update.example.com round 0 index 0 Allowed mutated", "v.update.example.com round 0 index 0 Allowed"}
		if diff := cmp.Diff(want, trace(result)); diff != "" {
			t.Fatal(diff, result.Rejection)
		}
		review := result.Calls[0].Request
		for _, check := range []struct{ got, want string }{
			{valueAt(t, review, "request", "operation"), "UPDATE"},
			{valueAt(t, review, "request", "dryRun"), fmt.Sprint(dryRun)},
			{valueAt(t, review, "request", "oldObject", "status", "podIP"), "10.0.0.1"},
			{valueAt(t, review, "request", "oldObject", "metadata", "labels"), "<nil>"},
			{valueAt(t, review, "request", "object", "metadata", "labels", "new"), "yes"},
			{valueAt(t, result.Object, "metadata", "annotations", "a"), "was-here"},
			{fmt.Sprint(result.Limits), "[The old object is not stored as given: the API server has other values at metadata.resourceVersion.]"},
		} {
			if check.got != check.want {
				t.Errorf("got %s, want %s", check.got, check.want)
			}
		}
		if n := c.count(t, "/api/v1/namespaces/update/pods"); n != 0 {
			t.Errorf("%d Pods are left", n)
		}
	}
}

func testDelete(t *testing.T, c sharedServer) {
	rules := append(rulesFor("", "configmaps", "*"), rulesFor("", "namespaces", "*")...)
	engine := c.connect(t, configured("delete.example.com", map[string]http.Handler{
		"a.delete.example.com": responder(allow), "v.delete.example.com": responder(allow),
	}, mutatingHook("a.delete.example.com", rules), validatingHook("v.delete.example.com", rules)))
	want := []string{"a.delete.example.com round 0 index 0 Allowed", "v.delete.example.com round 0 index 0 Allowed"}
	for _, resource := range []struct {
		name, object string
		before       int
	}{
		{"configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"delete","finalizers":["example.com/wait"]}}`, 0},
		{"namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"delete-me"}}`, 0},
	} {
		for _, dryRun := range []bool{true, false} {
			result := admit(t, engine, Request{
				Operation: admissionv1.Delete, Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource.name},
				OldObject: []byte(resource.object), DryRun: dryRun,
			})
			if diff := cmp.Diff(want, trace(result)); diff != "" {
				t.Fatal(diff, result.Rejection)
			}
			if result.Object != nil || valueAt(t, result.Calls[1].Request, "request", "object") != "<nil>" {
				t.Errorf("there is an object: %s", result.Object)
			}
		}
	}
	if n := c.count(t, "/api/v1/namespaces/delete/configmaps"); n != 0 {
		t.Errorf("%d ConfigMaps are left", n)
	}
	var left realserver.Document
	if err := engine.(*serverEngine).server.API.Get(t.Context(), "/api/v1/namespaces/delete-me", &left); ifNotFound(err) == nil {
		t.Error("the Namespace is left")
	}
}

const widgetCRD = `
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string, enum: [red, blue]}
              size: {type: integer, default: 3}
          status: {type: object, properties: {phase: {type: string}}}
`

func widgets(t testing.TB, group string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, widgetCRD, group), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func testCustomResources(t *testing.T, c sharedServer) {
	rules := rulesFor("crd.example.com", "widgets", "*")
	engine := c.connect(t, configured("crd.example.com", map[string]http.Handler{
		"a.crd.example.com": patching(`[{"op":"add","path":"/spec/color","value":"blue"}]`),
	}, mutatingHook("a.crd.example.com", rules)), widgets(t, "crd.example.com"))
	resource := metav1.GroupVersionResource{Group: "crd.example.com", Version: "v1", Resource: "widgets"}
	widget := func(color string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"crd.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"color":%q},"status":{"phase":"old"}}`, color)
	}
	created := admit(t, engine, Request{Operation: admissionv1.Create, Resource: resource, Object: widget("red"), DryRun: true})
	if got := valueAt(t, created.Object, "spec"); got != "map[color:blue size:3]" {
		t.Error(got)
	}
	updated := admit(t, engine, Request{Operation: admissionv1.Update, Resource: resource, Object: widget("blue"), OldObject: widget("red")})
	if diff := cmp.Diff([]string{"a.crd.example.com round 0 index 0 Allowed"}, trace(updated)); diff != "" {
		t.Error(diff)
	}
	if got := valueAt(t, updated.Calls[0].Request, "request", "oldObject", "status", "phase"); got != "old" {
		t.Error(got)
	}
	if n := c.count(t, "/apis/crd.example.com/v1/namespaces/default/widgets"); n != 0 {
		t.Errorf("%d widgets are left", n)
	}
}

func testExec(t *testing.T, c sharedServer) {
	rules := rulesFor("", "pods/exec", admissionregistrationv1.Connect)
	deny := responder(func(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		allowed := !strings.Contains(string(req.Object.Raw), "rm")
		return &admissionv1.AdmissionResponse{Allowed: allowed, Result: &metav1.Status{Message: "no", Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}}
	})
	engine := c.connect(t, configured("exec.example.com", map[string]http.Handler{
		"a.exec.example.com": patching(`[{"op":"replace","path":"/stdin","value":false}]`), "v.exec.example.com": deny,
	}, mutatingHook("a.exec.example.com", rules), validatingHook("v.exec.example.com", rules)))
	exec := func(command string) *Result {
		return admit(t, engine, Request{
			Operation: admissionv1.Connect, Resource: pods, SubResource: "exec", Namespace: "exec", Name: "nobody",
			Object: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"PodExecOptions","stdin":true,"stdout":true,"container":"app","command":[%q,"-l"]}`, command),
		})
	}
	result := exec("ls")
	if !result.Admitted() {
		t.Fatal(result.Rejection)
	}
	if got := valueAt(t, result.Object, "command") + valueAt(t, result.Object, "stdin") + valueAt(t, result.Object, "container"); got != "[ls -l]<nil>app" {
		t.Errorf("%s: %s", got, result.Object)
	}
	denied := exec("rm")
	if denied.Admitted() || denied.Rejection.Code != http.StatusNotFound || denied.Calls[1].Effect != Denied {
		t.Errorf("%v %v", denied.Rejection, trace(denied))
	}
}

func testUser(t *testing.T, c sharedServer) {
	rules := rulesFor("", "configmaps", "*")
	engine := c.connect(t, configured("user.example.com", map[string]http.Handler{"v.user.example.com": responder(allow)},
		validatingHook("v.user.example.com", rules)))
	create := Request{
		Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, DryRun: true,
		Object: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`), FieldManager: "me",
		User: authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"system:masters"}, Extra: map[string]authenticationv1.ExtraValue{"team": {"a", "b"}}},
	}
	result := admit(t, engine, create)
	if got, want := valueAt(t, result.Calls[0].Request, "request", "userInfo"),
		"map[extra:map[team:[a b]] groups:[system:masters system:authenticated] uid:7 username:jane]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := valueAt(t, result.Calls[0].Request, "request", "options", "fieldManager"); got != "me" {
		t.Error(got)
	}
	create.User = authenticationv1.UserInfo{Username: "joe"}
	result = admit(t, engine, create)
	if result.Admitted() || len(result.Calls) != 0 || !strings.Contains(fmt.Sprint(result.Limits), "authorization") {
		t.Errorf("%v %v", result.Rejection, result.Limits)
	}
}
