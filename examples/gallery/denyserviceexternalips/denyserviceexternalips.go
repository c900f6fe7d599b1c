// SPDX-License-Identifier: Apache-2.0

// Package denyserviceexternalips reimplements Kubernetes' admission controller DenyServiceExternalIPs as a hook: a
// Service may keep the external IPs that it has, but may not add others.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips. The hook differs from it in
// one point: the API server does not call it for Services in kube-system or in the namespace of the webhook, so that a
// cluster can repair itself while the webhook is down.
package denyserviceexternalips

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hook returns the hook that denies new external IPs.
func Hook() *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "denyserviceexternalips.example.com",
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "services")),
	}, func(_ context.Context, req *webhook.Request[corev1.Service]) error {
		old, err := req.OldObject()
		if err != nil {
			return err
		}
		var known []string
		if old != nil {
			known = old.Spec.ExternalIPs
		}
		for _, ip := range req.Object.Spec.ExternalIPs {
			if !slices.Contains(known, ip) {
				return forbidden.Error(req.AdmissionRequest(), req.Object, "Use of external IPs is denied by admission control")
			}
		}
		return nil
	})
}
