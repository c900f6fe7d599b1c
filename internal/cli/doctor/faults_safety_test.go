// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// ruleFaults make the webhook dangerous. The expected checks are rules of pkg/lint.
var ruleFaults = []fault{
	{name: "called for its own Pods", want: "AK201 CONFIGURATION", before: func(w *world) {
		w.rules("CREATE", "", "pods", metav1.NamespaceSystem)
	}},
	{name: "called for Secrets that its Pods need", want: "AK202 CONFIGURATION", before: func(w *world) {
		w.rules("UPDATE", "", "secrets", metav1.NamespaceSystem)
	}},
	{name: "called for kube-system", want: "AK203 CONFIGURATION", before: func(w *world) {
		w.rules("CREATE", "", "pods", w.namespace)
	}},
	{name: "called for node leases", want: "AK204 CONFIGURATION", before: func(w *world) {
		w.rules("UPDATE", "coordination.k8s.io", "leases", metav1.NamespaceSystem, w.namespace)
	}},
	{name: "called for nodes", want: "AK205 CONFIGURATION", before: func(w *world) { w.rules("CREATE", "", "nodes", w.namespace) }},
	{name: "called for token reviews", want: "AK206 CONFIGURATION", before: func(w *world) {
		w.rules("CREATE", "authentication.k8s.io", "tokenreviews", w.namespace)
	}},
	{name: "called for everything", want: "AK207 CONFIGURATION", before: func(w *world) {
		w.rules("CREATE", "*", "*", w.namespace, metav1.NamespaceSystem, corev1.NamespaceNodeLease, metav1.NamespaceDefault)
		w.validating.Webhooks[0].Rules[0].Scope = ptr.To(admissionregistrationv1.NamespacedScope)
	}},
}

// crossFaults are between several configurations.
var crossFaults = []fault{
	{name: "webhooks block each other's Pods", want: "AK208 CONFIGURATION", after: func(t *testing.T, w *world) {
		w.rig.world(t, func(other *world) { other.rules("CREATE", "", "pods", metav1.NamespaceSystem, other.namespace) })
		w.rules("CREATE", "", "pods", metav1.NamespaceSystem, w.namespace)
		must(t, second(w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), w.validating, metav1.UpdateOptions{})))
	}},
	{name: "the timeouts of webhooks add up", want: "AK403 MutatingWebhookConfiguration/NAME", after: func(t *testing.T, w *world) {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
		for i := range 4 {
			v := w.validating.Webhooks[0]
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{Name: fmt.Sprintf("m%d.%s", i, v.Name), ClientConfig: v.ClientConfig, Rules: v.Rules,
				NamespaceSelector: v.NamespaceSelector, TimeoutSeconds: ptr.To[int32](10), SideEffects: v.SideEffects, AdmissionReviewVersions: v.AdmissionReviewVersions})
		}
		configurations := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
		must(t, second(configurations.Create(t.Context(), c, metav1.CreateOptions{})))
		t.Cleanup(func() {
			must(t, configurations.Delete(context.WithoutCancel(t.Context()), c.Name, metav1.DeleteOptions{}))
		})
	}},
}

// podFaults leave the webhook without enough Pods.
var podFaults = []fault{
	{name: "one replica", want: "AK210 CONFIGURATION", before: func(w *world) {
		w.deployment.Spec.Replicas = ptr.To[int32](1)
		w.pods, w.slice.Endpoints = w.pods[:1], w.slice.Endpoints[:1]
	}},
	{name: "one of two Pods is ready", want: "one-ready SERVICE", before: func(w *world) {
		w.pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		w.slice.Endpoints[1].Conditions.Ready = ptr.To(false)
	}},
	{name: "no PodDisruptionBudget", want: "no-disruption-budget SERVICE", before: func(w *world) { w.budget = nil }},
	{name: "a PodDisruptionBudget that allows all", want: "weak-disruption-budget SERVICE", before: func(w *world) {
		w.budget.Spec.MaxUnavailable = ptr.To(intstr.FromString("100%"))
	}},
	{name: "all Pods on one node", want: "one-node SERVICE", before: func(w *world) { w.pods[1].Spec.NodeName = w.pods[0].Spec.NodeName }},
}
