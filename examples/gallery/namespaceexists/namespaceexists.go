// SPDX-License-Identifier: Apache-2.0

// Package namespaceexists reimplements Kubernetes' admission controller NamespaceExists as a hook: a request for an
// object in a namespace is denied if the Namespace does not exist.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/namespace/exists. The hook differs from it as follows:
//
//   - In most cases, the API server denies the request before it calls the hook. It looks up the Namespace to compare
//     it with the namespaceSelector. If the Namespace does not exist, the API server answers as the original does. So
//     the hook itself denies only if the Namespace is deleted after that.
//   - The failurePolicy is Ignore, because the API server calls the hook for almost every write, those of nodes and
//     controllers included: a cluster whose nodes cannot renew their Leases stops. As the API server itself looks up the
//     Namespace, little is lost. So if the Namespace cannot be read, or if the caches have not synced, the request is
//     admitted. The original denies it.
//   - The API server does not call the hook for kube-system or for the namespace of the webhook.
package namespaceexists

import (
	"context"
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hook returns the hook that denies requests in a namespace that does not exist.
func Hook(namespaces *reads.Reader[*corev1.Namespace]) *webhook.Hook {
	everyWrite := webhook.OnEverything()
	everyWrite.Operations = []admissionregistrationv1.OperationType{
		admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
	}
	everyWrite.Scope = ptr.To(admissionregistrationv1.NamespacedScope) // Namespaces themselves have no namespace
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:           "namespaceexists.example.com",
		Rules:          webhook.Rules(everyWrite),
		FailurePolicy:  ptr.To(admissionregistrationv1.Ignore),
		TimeoutSeconds: ptr.To[int32](2), // a Lease of a node must be renewed in time
	}, func(ctx context.Context, req *webhook.Request[metav1.PartialObjectMetadata]) error {
		_, err := namespaces.Get(ctx, "", req.Namespace)
		if errors.Is(err, reads.ErrNotFound) {
			return apierrors.NewNotFound(corev1.Resource("namespaces"), req.Namespace)
		}
		return err
	})
}
