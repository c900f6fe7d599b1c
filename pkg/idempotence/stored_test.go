// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

const everything = admissionregistrationv1.OperationAll

// seen returns a webhook that annotates objects. It passes one request at a time to look, and fails the test with each
// new message that look returns.
func seen(t *testing.T, group, resource string, look func(r *admissionv1.AdmissionRequest, object, old document) string) Subject {
	t.Helper()
	var one sync.Mutex // the harness also makes calls in parallel
	var complaints []string
	return editing(group, "v1", resource, []admissionregistrationv1.OperationType{everything}, func(r *admissionv1.AdmissionRequest, doc document) {
		one.Lock()
		defer one.Unlock()
		complaint := look(r, decoded(r.Object.Raw), decoded(r.OldObject.Raw))
		if complaint != "" && !slices.Contains(complaints, complaint) {
			complaints = append(complaints, complaint)
			t.Errorf("%s: %s: object %s, old object %s", r.Operation, complaint, r.Object.Raw, r.OldObject.Raw)
		}
		if doc != nil {
			marked(r, doc)
		}
	})
}

// TestStoredObjectHasSystemFields looks at all requests of a run. Stored objects must have the metadata that the API
// server sets, and new objects must not.
func TestStoredObjectHasSystemFields(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", UID: "a-copy", ResourceVersion: "7"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:v1"}}},
	}
	operations := map[admissionv1.Operation]bool{}
	subject := seen(t, "", "pods", func(r *admissionv1.AdmissionRequest, object, old document) string {
		operations[r.Operation] = true
		switch r.Operation {
		case admissionv1.Create:
			return isNew(r, object, old)
		case admissionv1.Update:
			return isUpdate(r, object, old)
		case admissionv1.Delete:
			if object != nil {
				return "there is an object"
			}
			return isStored(r, old)
		}
		return "the request has the wrong operation"
	})
	report, err := Run(t.Context(), subject, Options{Samples: []runtime.Object{pod}, Objects: 6})
	if err != nil {
		t.Fatal(err)
	}
	if len(operations) != 3 || !report.OK() {
		t.Errorf("operations %v:\n%s", operations, text(report))
	}
}

func isNew(r *admissionv1.AdmissionRequest, object, old document) string {
	meta := at(object, "metadata")
	for _, name := range objects.SystemFields {
		if meta[name] != nil {
			return "a new object has " + name
		}
	}
	switch name, _ := meta["name"].(string); {
	case old != nil:
		return "there is an old object"
	case r.Name != name && (meta["generateName"] == nil || r.Name != ""): // another webhook may set the name
		return "the request has the wrong name"
	case meta["namespace"] != nil && meta["namespace"] != r.Namespace:
		return "the request has the wrong namespace"
	}
	return ""
}

func isUpdate(r *admissionv1.AdmissionRequest, object, old document) string {
	meta, was := at(object, "metadata"), at(old, "metadata")
	for _, name := range []string{"name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation"} {
		if meta["namespace"] != nil && fmt.Sprint(meta[name]) != fmt.Sprint(was[name]) {
			return "another " + name + " than the old object"
		}
	}
	return isStored(r, old)
}

func isStored(r *admissionv1.AdmissionRequest, old document) string {
	meta := at(old, "metadata")
	for _, name := range []string{"name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation"} {
		if meta[name] == nil {
			return "a stored object has no " + name
		}
	}
	if r.Name != meta["name"] || r.Namespace != meta["namespace"] {
		return "the request is for another object"
	}
	return ""
}

func clusterRole() runtime.Object {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

func TestObjectsAreWhereTheyBelong(t *testing.T) {
	own := gateway().(*unstructured.Unstructured)
	own.SetAPIVersion("net.example.com/v1")
	own.SetNamespace("edge")
	for _, tt := range []struct {
		name, group, resource string
		sample                runtime.Object
		inRequest, inObject   any
	}{
		{"cluster-scoped", "rbac.authorization.k8s.io", "clusterroles", clusterRole(), "", nil},
		{"a Namespace", "", "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blue"}}, "blue", nil},
		{"a sample's own", "net.example.com", "gateways", own, "edge", "edge"},
		{"none", "", "configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, objects.TestNamespace, objects.TestNamespace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject := seen(t, tt.group, tt.resource, func(r *admissionv1.AdmissionRequest, object, old document) string {
				if object == nil {
					object = old
				}
				meta := at(object, "metadata")
				if tt.inObject != nil && r.Namespace != tt.inRequest && isCopy(r.Namespace) {
					if got := meta["namespace"]; got != nil && got != r.Namespace {
						return fmt.Sprintf("the copy's namespace is %v", got)
					}
					return ""
				}
				if got := meta["namespace"]; got != tt.inObject && (got != nil || tt.inObject == nil) {
					return fmt.Sprintf("the object's namespace is %v", got)
				}
				inRequest := tt.inRequest
				if tt.resource == "namespaces" { // the namespace of the request is the object's name
					inRequest, _ = meta["name"].(string)
				}
				if r.Namespace != inRequest {
					return fmt.Sprintf("the request's namespace is %q", r.Namespace)
				}
				return ""
			})
			report, err := Run(t.Context(), subject, Options{Samples: []runtime.Object{tt.sample}, Objects: 1})
			if err != nil || report.Calls == 0 || !report.OK() {
				t.Errorf("%v:\n%s", err, text(report))
			}
		})
	}
}

// isCopy reports whether a namespace is one of those in which the harness places copies of an object and objects that
// have no namespace.
func isCopy(namespace string) bool {
	return namespace == "copies" || namespace == objects.TestNamespace
}

func TestNamespaceSelector(t *testing.T) {
	selects := func(s *metav1.LabelSelector) func(w *admissionregistrationv1.MutatingWebhook) {
		return func(w *admissionregistrationv1.MutatingWebhook) { w.NamespaceSelector = s }
	}
	scoped := func(s admissionregistrationv1.ScopeType) func(w *admissionregistrationv1.MutatingWebhook) {
		return func(w *admissionregistrationv1.MutatingWebhook) { w.Rules[0].Scope = &s }
	}
	not := func(values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: values}}}
	}
	injected := &metav1.LabelSelector{MatchLabels: map[string]string{"inject": "yes"}}
	named := func(name string, labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	for _, tt := range []struct {
		name       string
		change     func(w *admissionregistrationv1.MutatingWebhook)
		namespaces []*corev1.Namespace
		want       string // the namespaces of the requests, empty for none
	}{
		{"labels that are asked for", selects(injected), nil, objects.TestNamespace},
		{"a name that is asked for", selects(&metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "prod"}}), nil, "prod"},
		{"a name that is not wanted", selects(not("kube-system", objects.TestNamespace)), nil, objects.TestNamespace + "-1"},
		{"the one of several that is selected", selects(injected), []*corev1.Namespace{named("plain", nil), named("mesh", map[string]string{"inject": "yes"})}, "mesh"},
		{"none of those given", selects(injected), []*corev1.Namespace{named("plain", nil)}, ""},
		{"rules for namespaces", scoped(admissionregistrationv1.NamespacedScope), nil, objects.TestNamespace + " copies"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			subject := editing("", "v1", "configmaps", onBoth, func(r *admissionv1.AdmissionRequest, doc document) {
				if !slices.Contains(got, r.Namespace) {
					got = append(got, r.Namespace)
				}
				marked(r, doc)
			})
			tt.change(&subject.webhooks[0].MutatingWebhook)
			report, err := Run(t.Context(), subject, Options{Objects: 4, Namespaces: tt.namespaces})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("requests are in %q:\n%s", got, text(report))
			}
		})
	}
	subject := editing("", "v1", "configmaps", onBoth, marked)
	scoped(admissionregistrationv1.ClusterScope)(&subject.webhooks[0].MutatingWebhook)
	if _, err := Run(t.Context(), subject, Options{}); err == nil {
		t.Error("a rule with the scope Cluster matches ConfigMaps")
	}
	subject = editing("", "v1", "configmaps", onBoth, marked)
	selects(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Of"}}})(&subject.webhooks[0].MutatingWebhook)
	if _, err := Run(t.Context(), subject, Options{}); err == nil {
		t.Error("an invalid selector is accepted")
	}
}

// TestFailsInOneNamespace tests a webhook that fails for every object in one of two namespaces. A copy of an object
// there says nothing about the webhook's parts in it.
func TestFailsInOneNamespace(t *testing.T) {
	reached := false
	subject := editing("", "v1", "configmaps", onBoth, func(r *admissionv1.AdmissionRequest, doc document) {
		if r.Namespace == "broken" {
			reached = true
			panic("the settings of the namespace cannot be read")
		}
		marked(r, doc)
	})
	namespaces := []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, {ObjectMeta: metav1.ObjectMeta{Name: "broken"}}}
	report, err := Run(t.Context(), subject, Options{Objects: 4, Namespaces: namespaces})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || !reached {
		t.Errorf("reached %v:\n%s", reached, text(report))
	}
}

func TestDeletions(t *testing.T) {
	deleting := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Delete}
	for _, tt := range []struct {
		name   string
		edit   change
		broken Law
	}{
		{"looks at nothing", func(r *admissionv1.AdmissionRequest, doc document) {
			if r.Operation == admissionv1.Create {
				marked(r, doc)
			}
		}, ""},
		{"reads the object", func(r *admissionv1.AdmissionRequest, doc document) {
			if doc["metadata"] == nil {
				panic("no metadata")
			}
			marked(r, doc)
		}, L2},
		{"patches the object", func(r *admissionv1.AdmissionRequest, doc document) {
			if doc != nil {
				marked(r, doc)
			}
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing("", "v1", "configmaps", deleting, tt.edit), Options{Objects: 4})
			if err != nil {
				t.Fatal(err)
			}
			wants(t, report, tt.broken)
		})
	}
}

// TestSubresourcesOnly tests webhooks with rules for subresources. If all rules name subresources, the run must be
// incomplete and make no call.
func TestSubresourcesOnly(t *testing.T) {
	for _, resource := range []string{"pods/status", "*/scale", "pods/ephemeralcontainers"} {
		calls := 0
		report, err := Run(t.Context(), editing("", "v1", resource, onBoth, func(*admissionv1.AdmissionRequest, document) { calls++ }), Options{})
		if err != nil || calls > 0 || !strings.Contains(report.Texts(report.Incomplete), resource) {
			t.Errorf("%s: %d calls, %v:\n%s", resource, calls, err, text(report))
		}
	}
	for _, resource := range []string{"pods/*", "*/*"} {
		report, err := Run(t.Context(), editing("", "v1", resource, onCreate, marked), Options{Objects: 4})
		if err != nil || report.Changed == 0 || !report.OK() {
			t.Errorf("%s: %v:\n%s", resource, err, text(report))
		}
	}
}

func TestCaseOfAnUpdate(t *testing.T) {
	c := Case{Law: L1, Object: document{"apiVersion": "v1", "kind": "ConfigMap", "n": int64(1) << 60}, Old: document{"n": int64(1)<<60 + 1}}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Case
	if err := json.Unmarshal(encoded, &back); err != nil || fmt.Sprint(back.Object, back.Old) != fmt.Sprint(c.Object, c.Old) {
		t.Errorf("%v, %v comes back as %v, %v: %v", c.Object, c.Old, back.Object, back.Old, err)
	}
}
