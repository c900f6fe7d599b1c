// SPDX-License-Identifier: Apache-2.0

// Package limitpodhardantiaffinitytopology reimplements Kubernetes' admission controller
// LimitPodHardAntiAffinityTopology as a hook: a Pod may require other Pods to be absent from its node, but not from a
// larger part of the cluster, such as a zone. Otherwise a user could block a whole zone.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/antiaffinity. The hook differs from it as follows:
//
//   - Pods in kube-system, and in the namespace of the webhook, are not checked. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
//
// Like the original, the hook also checks updates. So it denies every update of a Pod that has such a requirement and
// was created before the hook was registered.
package limitpodhardantiaffinitytopology

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hook returns the hook that denies required anti-affinity with a topology key other than kubernetes.io/hostname.
func Hook() *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "limitpodhardantiaffinitytopology.example.com",
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
	}, validate)
}

func validate(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	affinity := req.Object.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if term.TopologyKey != corev1.LabelHostname {
			return apierrors.NewForbidden(corev1.Resource("pods"), req.Object.Name, fmt.Errorf(
				"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %v but only key %v is allowed",
				term.TopologyKey, corev1.LabelHostname))
		}
	}
	return nil
}
