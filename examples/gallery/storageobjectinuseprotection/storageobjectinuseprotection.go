// SPDX-License-Identifier: Apache-2.0

// Package storageobjectinuseprotection has the hook of Kubernetes' admission controller StorageObjectInUseProtection: a
// volume, a claim and a VolumeAttributesClass get a finalizer, which a controller removes when the object is not in use.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection. The hook differs from it
// in one point: the API server does not call it for claims in kube-system and in the namespace of the webhook, so that
// a cluster can repair itself while the webhook is down. In a cluster without the controllers that remove the
// finalizers, the deletion of these objects never ends.
package storageobjectinuseprotection

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// The finalizers that the hook adds to the three kinds.
const (
	VolumeFinalizer          = "kubernetes.io/pv-protection"
	ClaimFinalizer           = "kubernetes.io/pvc-protection"
	AttributesClassFinalizer = "kubernetes.io/vac-protection"
)

// Hook returns the hook that adds the finalizers.
func Hook() *webhook.Hook {
	return webhook.MutatingKinds(admissionregistrationv1.MutatingWebhook{
		Name: "storageobjectinuseprotection.example.com",
		Rules: webhook.Rules(
			webhook.OnCreate("", "v1", "persistentvolumes", "persistentvolumeclaims"),
			webhook.OnCreate("storage.k8s.io", "v1", "volumeattributesclasses"),
		),
	},
		webhook.On(func(_ context.Context, req *webhook.Request[corev1.PersistentVolume]) error {
			add(&req.Object.Finalizers, VolumeFinalizer)
			return nil
		}),
		webhook.On(func(_ context.Context, req *webhook.Request[corev1.PersistentVolumeClaim]) error {
			add(&req.Object.Finalizers, ClaimFinalizer)
			return nil
		}),
		webhook.On(func(_ context.Context, req *webhook.Request[storagev1.VolumeAttributesClass]) error {
			add(&req.Object.Finalizers, AttributesClassFinalizer)
			return nil
		}),
	)
}

func add(finalizers *[]string, name string) {
	if !slices.Contains(*finalizers, name) {
		*finalizers = append(*finalizers, name)
	}
}
