// SPDX-License-Identifier: Apache-2.0

// Package defaulttolerationseconds reimplements Kubernetes' admission controller DefaultTolerationSeconds as a hook: if
// a node is not ready or not reachable, its Pods stay there for some time and are then evicted. A Pod with its own
// toleration for such a taint keeps that toleration.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds. The hook differs from it as follows:
//
//   - The seconds are arguments. The original reads them from the flags --default-not-ready-toleration-seconds and
//     --default-unreachable-toleration-seconds of the API server.
//   - Pods in kube-system, and in the namespace of the webhook, are not changed. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
//
// The original is on in every API server unless it is disabled, and the API server calls it before the webhooks. So
// this hook has an effect only where the original is disabled.
package defaulttolerationseconds

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// DefaultSeconds is the default of both flags of the API server.
const DefaultSeconds = 300

// Hook returns the hook that adds the tolerations. With 0 or a negative number, a Pod is evicted at once.
func Hook(notReadySeconds, unreachableSeconds int64) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:  "defaulttolerationseconds.example.com",
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		addDefault(&req.Object.Spec, corev1.TaintNodeNotReady, notReadySeconds)
		addDefault(&req.Object.Spec, corev1.TaintNodeUnreachable, unreachableSeconds)
		return nil
	})
}

// addDefault adds a toleration for the NoExecute taint with this key, unless there is one.
func addDefault(spec *corev1.PodSpec, key string, seconds int64) {
	for _, t := range spec.Tolerations {
		if concerns(t, key) {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
		Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
	})
}

// concerns reports whether the toleration can match a NoExecute taint with this key. As in the original, its operator
// and value do not count.
func concerns(t corev1.Toleration, key string) bool {
	return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
}
