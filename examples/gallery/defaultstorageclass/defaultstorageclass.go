// SPDX-License-Identifier: Apache-2.0

// Package defaultstorageclass reimplements Kubernetes' admission controller DefaultStorageClass as a hook: a
// PersistentVolumeClaim without a class gets the default one.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault. The hook differs from it in
// one point: the API server does not call it for claims in kube-system or in the namespace of the webhook, so that a
// cluster can repair itself while the webhook is down.
package defaultstorageclass

import (
	"cmp"
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// The annotations that make a StorageClass the default one, if their value is "true".
const (
	Annotation     = "storageclass.kubernetes.io/is-default-class"
	BetaAnnotation = "storageclass.beta.kubernetes.io/is-default-class"
)

// Hook returns the hook that sets the class of a PersistentVolumeClaim.
func Hook(classes storagelisters.StorageClassLister) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:  "defaultstorageclass.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "persistentvolumeclaims")),
	}, func(_ context.Context, req *webhook.Request[corev1.PersistentVolumeClaim]) error {
		claim := req.Object
		if _, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok || claim.Spec.StorageClassName != nil {
			return nil // an empty class is a choice, too
		}
		class, err := defaultClass(classes)
		if class != nil {
			claim.Spec.StorageClassName = ptr.To(class.Name)
		}
		return err
	})
}

// defaultClass returns the newest of the default classes. It returns nil if there is none.
func defaultClass(classes storagelisters.StorageClassLister) (*storagev1.StorageClass, error) {
	all, err := classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var newest *storagev1.StorageClass
	for _, class := range all {
		if isDefault(class) && (newest == nil || compare(class, newest) < 0) {
			newest = class
		}
	}
	return newest, nil
}

func isDefault(class *storagev1.StorageClass) bool {
	return slices.Contains([]string{class.Annotations[Annotation], class.Annotations[BetaAnnotation]}, "true")
}

// compare orders classes by their creation, newest first, and then by name.
func compare(a, b *storagev1.StorageClass) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
