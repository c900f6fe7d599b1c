// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
)

// A replacedCase is a webhook that sets a field, and the violations that the harness must report
// because of an update that replaces the object by its manifest.
type replacedCase struct {
	name   string
	sample func() runtime.Object
	edit   change
	want   string
	rules  []admissionregistrationv1.OperationType
}

// unset reports whether a field of the spec has no value. An empty storageClassName is a value.
func unset(doc document, field string) bool {
	value := at(doc, "spec")[field]
	return value == nil || value == "" && field != "storageClassName"
}

// setsField returns a change that sets an empty field of the spec.
func setsField(field string, value any) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		if unset(doc, field) {
			at(doc, "spec")[field] = value
		}
	}
}

// carriesOver returns a change that first copies an empty field of the spec from the old object.
func carriesOver(field string, edit change) change {
	return func(r *admissionv1.AdmissionRequest, doc document) {
		if r.Operation == admissionv1.Update && unset(doc, field) {
			if old := decoded(r.OldObject.Raw); !unset(old, field) {
				at(doc, "spec")[field] = at(old, "spec")[field]
			}
		}
		edit(r, doc)
	}
}

// replacedCases returns webhooks for immutable fields and for random values.
func replacedCases() []replacedCase {
	var drawn atomic.Int64
	draws := func(_ *admissionv1.AdmissionRequest, doc document) {
		if unset(doc, "id") {
			at(doc, "spec")["id"] = fmt.Sprintf("id-%x", drawn.Add(1)*7919%104729)
		}
	}
	class, setBalancer := setsField("storageClassName", "fast"), setsField("loadBalancerClass", "example.com/internal")
	balancer := func(r *admissionv1.AdmissionRequest, doc document) {
		if at(doc, "spec")["type"] == "LoadBalancer" {
			setBalancer(r, doc)
		}
	}
	service := setsField("serviceName", "web-headless")
	return []replacedCase{
		{"an immutable field of a StatefulSet, on CREATE only", database, on(admissionv1.Create, service), "L6 cannot be replaced", onBoth},
		{"an immutable field of a StatefulSet, carried over", database, carriesOver("serviceName", on(admissionv1.Create, service)), "", onBoth},
		{"an immutable field of a claim, on CREATE only: advice, because a bound claim has others", claim, on(admissionv1.Create, class), "advice", onBoth},
		{"an immutable field of a Service, on CREATE only", balanced, on(admissionv1.Create, balancer), "L6 cannot be replaced", onBoth},
		{"an immutable field of a Service, carried over", balanced, carriesOver("loadBalancerClass", on(admissionv1.Create, balancer)), "", onBoth},
		{"an immutable field of a StatefulSet, without UPDATE in the rules", database, service, "L6 cannot be replaced", onBoth[:1]},
		{"a mutable field of a StatefulSet, without UPDATE in the rules", database, setsField("minReadySeconds", 5), "", onBoth[:1]},
		{"an immutable field of a claim, without UPDATE in the rules", claim, class, "advice", onBoth[:1]},
		{"the default of the API server for an immutable field", storageClass, on(admissionv1.Create, func(_ *admissionv1.AdmissionRequest, doc document) {
			doc["reclaimPolicy"] = "Delete"
		}), "", onBoth},
		{"a time in nanoseconds", job, setsTime, "", onBoth},
		{"a random value of a custom resource, drawn again", job, draws, "L6 regenerates", onBoth},
		{"a random value of a custom resource, carried over", job, carriesOver("id", draws), "", onBoth},
	}
}

func (c replacedCase) subject() Subject {
	resources := map[string][3]string{
		"StatefulSet": {"apps", "v1", "statefulsets"}, "PersistentVolumeClaim": {"", "v1", "persistentvolumeclaims"},
		"Service": {"", "v1", "services"}, "StorageClass": {"storage.k8s.io", "v1", "storageclasses"},
		"Job": {"shop.example.com", "v1", "jobs"},
	}
	of := resources[c.sample().GetObjectKind().GroupVersionKind().Kind]
	return editing(of[0], of[1], of[2], c.rules, c.edit)
}

func (c replacedCase) run(t *testing.T, server *rest.Config) {
	report, err := Run(t.Context(), c.subject(), Options{
		Samples: []runtime.Object{c.sample()}, Objects: 2, CRDs: []*apiextensionsv1.CustomResourceDefinition{jobCRD()}, APIServer: server,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.want == "advice" {
		if !report.OK() || !slices.ContainsFunc(report.Findings, func(v *Violation) bool { return v.FailureMode == FailureCannotReplace }) {
			t.Errorf("want advice that the object cannot be replaced:\n%s", text(report))
		}
		return
	}
	if got := violations(report); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
		t.Errorf("violations %q, want %q:\n%s", got, c.want, text(report))
	}
}

// TestReplacedByTheManifest tests updates whose new object is the manifest from which the object was created. It lacks
// what the webhook added.
func TestReplacedByTheManifest(t *testing.T) {
	for _, c := range replacedCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, nil)
		})
	}
}

func database() runtime.Object {
	labels := map[string]string{"app": "db"}
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:v1"}}},
			},
		},
	}
}

func claim() runtime.Object {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// setsTime sets an empty ID to the current time.
func setsTime(_ *admissionv1.AdmissionRequest, doc document) {
	if unset(doc, "id") {
		at(doc, "spec")["id"] = time.Now().UTC().Format(time.RFC3339Nano)
	}
}

func storageClass() runtime.Object {
	return &storagev1.StorageClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: "fast"},
		Provisioner: "example.com/fast",
	}
}

func balanced() runtime.Object {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
}

// TestReplacedOnTheAPIServer runs the webhooks for StatefulSets against a real API server, which decides what is
// immutable.
func TestReplacedOnTheAPIServer(t *testing.T) {
	through := apiservertest.Start(t, nil).Config
	for _, c := range replacedCases() {
		if _, ok := c.sample().(*appsv1.StatefulSet); ok {
			t.Run(c.name, func(t *testing.T) { c.run(t, through) })
		}
	}
}
