// SPDX-License-Identifier: Apache-2.0

// Package persistentvolumeclaimresize reimplements Kubernetes' admission controller PersistentVolumeClaimResize as a
// hook: a claim may grow only if it is bound and its StorageClass allows expansion.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize. The hook differs from it in
// one point: the API server does not call it for claims in kube-system or in the namespace of the webhook, so that a
// cluster can repair itself while the webhook is down.
package persistentvolumeclaimresize

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hook returns the hook that checks a claim whose request for storage grows.
func Hook(classes storagelisters.StorageClassLister) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "persistentvolumeclaimresize.example.com",
		Rules: webhook.Rules(webhook.OnUpdate("", "v1", "persistentvolumeclaims")),
	}, func(_ context.Context, req *webhook.Request[corev1.PersistentVolumeClaim]) error {
		old, err := req.OldObject()
		if err != nil {
			return err
		}
		claim := req.Object
		switch {
		case claim.Spec.Resources.Requests.Storage().Cmp(*old.Spec.Resources.Requests.Storage()) <= 0:
			return nil
		case old.Status.Phase != corev1.ClaimBound:
			return forbidden.Error(req.AdmissionRequest(), claim, "Only bound persistent volume claims can be expanded")
		case !allowsExpansion(classes, claim, old):
			return forbidden.Error(req.AdmissionRequest(), claim, "only dynamically provisioned pvc can be resized and "+
				"the storageclass that provisions the pvc must support resize")
		}
		return nil
	})
}

// allowsExpansion reports whether the claim keeps its class and the class allows expansion.
func allowsExpansion(classes storagelisters.StorageClassLister, claim, old *corev1.PersistentVolumeClaim) bool {
	name := classOf(claim)
	if name == "" || name != classOf(old) {
		return false
	}
	class, err := classes.Get(name)
	return err == nil && ptr.Deref(class.AllowVolumeExpansion, false)
}

// classOf returns the name of the StorageClass. The beta annotation takes precedence over the field.
func classOf(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	return ptr.Deref(claim.Spec.StorageClassName, "")
}
