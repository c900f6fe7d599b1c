// SPDX-License-Identifier: Apache-2.0

// Package storageobjectinuseprotection reimplements Kubernetes' admission controller StorageObjectInUseProtection as a
// hook: each new PersistentVolume, PersistentVolumeClaim and VolumeAttributesClass gets a finalizer. A controller
// removes it when the object is deleted and no longer in use.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection. The hook differs from it
// in one point: the API server does not call it for claims in kube-system or in the namespace of the webhook, so that a
// cluster can repair itself while the webhook is down. In a cluster without the controllers that remove the finalizers,
// these objects are never deleted.
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
