// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// A Trial sends the requests of a proof to one webhook.
type Trial struct {
	TB testing.TB
	// Case describes the webhook.
	Case *Case
	// Start returns a new instance of the webhook, with empty memory.
	Start func() http.Handler
}

// Sample returns a copy of the sample as the API server sends it.
func (t *Trial) Sample() map[string]any {
	t.TB.Helper()
	var obj object
	if err := yaml.Unmarshal([]byte(t.Case.Sample), &obj); err != nil {
		t.TB.Fatalf("%s: the sample is not YAML: %v", t.Case.Name, err)
	}
	return t.Canonical(obj)
}

// Canonical returns obj in the form that the API server stores. It decodes an object of a built-in kind into its Go
// type and encodes it again, which normalizes quantities and removes nulls. It does not change a custom resource.
func (t *Trial) Canonical(obj object) map[string]any {
	t.TB.Helper()
	obj = clone(obj)
	gvk := kindOf(obj)
	if !scheme.Scheme.Recognizes(gvk) {
		return obj
	}
	value, err := scheme.Scheme.New(gvk)
	if err != nil {
		t.TB.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj, value, true); err != nil {
		t.TB.Fatalf("%s: not a %s: %v", t.Case.Name, gvk.Kind, err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		t.TB.Fatal(err)
	}
	var out object
	if err := json.Unmarshal(data, &out); err != nil {
		t.TB.Fatal(err)
	}
	return out
}

func kindOf(obj object) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(text(obj, "apiVersion"), text(obj, "kind"))
}

// An Instance is a running webhook.
type Instance struct {
	t       *Trial
	handler http.Handler
}

// Instance returns a new instance of the webhook, with empty memory.
func (t *Trial) Instance() *Instance { return &Instance{t: t, handler: t.Start()} }

// Webhook returns an instance of another webhook, such as a rival.
func (t *Trial) Webhook(h http.Handler) *Instance { return &Instance{t: t, handler: h} }

// An Answer is the result of one call.
type Answer struct {
	// Object is the object after the patch. It is the unchanged object if the call failed or the webhook denied it.
	Object object
	// Patch is the JSON Patch, or empty.
	Patch string
	// Problem says why the object was denied, or why the call failed. It is empty if the object was admitted.
	Problem string
}

// Request returns a request for a CREATE or UPDATE of obj. old is the stored object, or nil.
func (t *Trial) Request(op admissionv1.Operation, obj, old object) *admissionv1.AdmissionRequest {
	gvk := kindOf(obj)
	plural := t.Case.Webhook.Rules[0].Resources[0]
	kind := metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	resource := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural}
	namespace := text(obj, "metadata", "namespace")
	if namespace == "" {
		namespace = "shop"
	}
	dryRun := false
	req := &admissionv1.AdmissionRequest{
		UID:  types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", uidCounter.Add(1))),
		Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
		Name: text(obj, "metadata", "name"), Namespace: namespace, Operation: op,
		UserInfo: authenticationv1.UserInfo{Username: "ada", Groups: []string{"system:authenticated"}},
		DryRun:   &dryRun,
	}
	req.Object.Raw = encode(obj)
	if old != nil {
		req.OldObject.Raw = encode(old)
	}
	return req
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

// Call sends a request and applies the patch as the API server does.
func (i *Instance) Call(req *admissionv1.AdmissionRequest) Answer {
	i.t.TB.Helper()
	var before object
	if err := json.Unmarshal(req.Object.Raw, &before); err != nil {
		i.t.TB.Fatal(err)
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req}
	path := "/"
	if i.t.Case.Path != "" {
		path = i.t.Case.Path
	}
	call := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(encode(review))))
	call.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	i.handler.ServeHTTP(rec, call)
	if rec.Code != http.StatusOK {
		return Answer{Object: before, Problem: fmt.Sprintf("status %d: %s", rec.Code, rec.Body)}
	}
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil || out.Response == nil {
		return Answer{Object: before, Problem: "not an AdmissionReview: " + rec.Body.String()}
	}
	switch res := out.Response; {
	case res.UID != req.UID:
		return Answer{Object: before, Problem: "wrong uid"}
	case !res.Allowed:
		return Answer{Object: before, Problem: fmt.Sprintf("denied: %v", res.Result)}
	case len(res.Patch) == 0:
		return Answer{Object: before}
	default:
		return i.patched(before, req.Object.Raw, res.Patch)
	}
}

func (i *Instance) patched(before object, doc, patch []byte) Answer {
	i.t.TB.Helper()
	answer := Answer{Object: before, Patch: string(patch)}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err == nil {
		doc, err = decoded.Apply(doc)
	}
	if err != nil {
		answer.Problem = fmt.Sprintf("the patch %s does not apply: %v", patch, err)
		return answer
	}
	var after object
	if err := json.Unmarshal(doc, &after); err != nil {
		answer.Problem = "the patched object is not an object"
		return answer
	}
	answer.Object = i.t.Canonical(after)
	return answer
}

// Try sends a CREATE and returns the answer.
func (i *Instance) Try(obj object) Answer {
	i.t.TB.Helper()
	return i.Call(i.t.Request(admissionv1.Create, obj, nil))
}

// Create sends a CREATE that must be admitted, and returns the object after the patch.
func (i *Instance) Create(obj object) map[string]any {
	i.t.TB.Helper()
	return i.admitted(i.Try(obj))
}

// Update sends an UPDATE that must be admitted, and returns the object after the patch.
func (i *Instance) Update(obj, old object) map[string]any {
	i.t.TB.Helper()
	return i.admitted(i.Call(i.t.Request(admissionv1.Update, obj, old)))
}

func (i *Instance) admitted(a Answer) object {
	i.t.TB.Helper()
	if a.Problem != "" {
		i.t.TB.Fatalf("%s: %s", i.t.Case.Name, a.Problem)
	}
	return a.Object
}

// differ returns the text says with the difference between two objects, or "" if they are equal.
func differ(says string, want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return says + ":\n" + cmp.Diff(want, got)
}
