// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Names of the hooks, and keys of the data of a ConfigMap. The mutating hook writes Seen, which shows that
// it was called. The validating hook denies Forbidden, which shows that it is enforced.
const (
	MutatingName   = "mutating.proof.example.com"
	ValidatingName = "validating.proof.example.com"
	Seen           = "seen"
	Forbidden      = "forbidden"
)

// Hooks returns a mutating and a validating hook for the ConfigMaps of a namespace. Each call lasts as long as pause,
// and fails if its context ends earlier. The context must not end while the client still waits.
func Hooks(namespace string, pause time.Duration) []*webhook.Hook {
	rules := webhook.Rules(webhook.OnCreate("", "v1", "configmaps"))
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name: MutatingName, Rules: rules, NamespaceSelector: selector, TimeoutSeconds: new(int32(10)),
		}, func(ctx context.Context, req *webhook.Request[corev1.ConfigMap]) error {
			if req.Object.Data == nil {
				req.Object.Data = map[string]string{}
			}
			req.Object.Data[Seen] = "true"
			return Wait(ctx, pause)
		}),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: ValidatingName, Rules: rules, NamespaceSelector: selector, TimeoutSeconds: new(int32(10)),
		}, func(ctx context.Context, req *webhook.Request[corev1.ConfigMap]) error {
			if req.Object.Data[Forbidden] != "" {
				return webhook.Deny(Forbidden)
			}
			return Wait(ctx, pause)
		}),
	}
}

// Wait simulates work, such as a request to another server.
func Wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
