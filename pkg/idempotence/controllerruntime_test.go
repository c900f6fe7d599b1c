// SPDX-License-Identifier: Apache-2.0

package idempotence_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence"
)

// TestDefaulter tests a defaulter of controller-runtime with a manifest of controller-gen, as in a kubebuilder project.
// docs/idempotence.md shows this test.
func TestDefaulter(t *testing.T) {
	manifest, err := os.ReadFile("testdata/kubebuilder/manifests.yaml") // made by controller-gen
	if err != nil {
		t.Fatal(err)
	}
	var config admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.Unmarshal(manifest, &config); err != nil {
		t.Fatal(err)
	}
	idempotence.Check(t, idempotence.Handler(config.Webhooks[0], func() http.Handler {
		return admission.WithDefaulter(scheme.Scheme, &PodDefaulter{})
	}), idempotence.Options{Samples: []runtime.Object{switchedOn()}})
}

func switchedOn() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-", Annotations: map[string]string{wantsAgent: "yes"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}}},
	}
}

const wantsAgent = "agent.example.com/inject"

// PodDefaulter adds an agent container to each new Pod that has the annotation wantsAgent, unless the Pod has that
// container.
type PodDefaulter struct{}

// Default implements admission.Defaulter.
func (*PodDefaulter) Default(ctx context.Context, pod *corev1.Pod) error {
	req, err := admission.RequestFromContext(ctx)
	if err == nil && req.Operation == admissionv1.Create && pod.Annotations[wantsAgent] == "yes" {
		ensureAgent(&pod.Spec)
	}
	return err
}

func ensureAgent(spec *corev1.PodSpec) {
	isAgent := func(c corev1.Container) bool { return c.Name == "agent" }
	if !slices.ContainsFunc(slices.Concat(spec.Containers, spec.InitContainers), isAgent) {
		spec.Containers = append(spec.Containers, corev1.Container{Name: "agent", Image: "registry.example.com/agent:v2"})
	}
}

// TestPlainHandler tests a handler that uses no framework.
func TestPlainHandler(t *testing.T) {
	registration := admissionregistrationv1.MutatingWebhook{
		Name:                    "agent.example.com",
		AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
	}
	subject := idempotence.Handler(registration, func() http.Handler { return http.HandlerFunc(plain) })
	idempotence.Check(t, subject, idempotence.Options{Samples: []runtime.Object{switchedOn()}})
}

func plain(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var pod corev1.Pod
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	before := len(pod.Spec.Containers)
	if ensureAgent(&pod.Spec); len(pod.Spec.Containers) > before {
		review.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
		review.Response.Patch, _ = json.Marshal([]any{
			map[string]any{"op": "add", "path": "/spec/containers/-", "value": pod.Spec.Containers[before]},
		})
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}
