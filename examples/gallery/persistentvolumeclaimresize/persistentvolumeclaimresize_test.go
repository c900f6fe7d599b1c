// SPDX-License-Identifier: Apache-2.0

package persistentvolumeclaimresize

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
)

func claim(class *string, size string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: class},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	return c
}

func TestHook(t *testing.T) {
	hook := Hook(storagelisters.NewStorageClassLister(gallerytest.Lister(t,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "growing"}, AllowVolumeExpansion: ptr.To(true)},
	)))
	const (
		unbound     = `persistentvolumeclaims "data" is forbidden: Only bound persistent volume claims can be expanded`
		unsupported = `persistentvolumeclaims "data" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`
	)
	pending := claim(ptr.To("growing"), "1Gi")
	pending.Status.Phase = corev1.ClaimPending
	annotated := claim(ptr.To("growing"), "2Gi")
	annotated.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "fixed"}
	rows := []struct {
		name     string
		old, new *corev1.PersistentVolumeClaim
		denial   string
	}{
		{"grows", claim(ptr.To("growing"), "1Gi"), claim(ptr.To("growing"), "2Gi"), ""},
		{"shrinks", claim(ptr.To("fixed"), "2Gi"), claim(ptr.To("fixed"), "1Gi"), ""},
		{"the same size in another unit", claim(ptr.To("fixed"), "1Gi"), claim(ptr.To("fixed"), "1024Mi"), ""},
		{"not bound", pending, claim(ptr.To("growing"), "2Gi"), unbound},
		{"the class is fixed", claim(ptr.To("fixed"), "1Gi"), claim(ptr.To("fixed"), "2Gi"), unsupported},
		{"no class", claim(nil, "1Gi"), claim(nil, "2Gi"), unsupported},
		{"no such class", claim(ptr.To("gone"), "1Gi"), claim(ptr.To("gone"), "2Gi"), unsupported},
		{"the annotation counts", claim(ptr.To("growing"), "1Gi"), annotated, unsupported},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			decision, _ := gallerytest.On(t, hook, admissionv1.Update, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", row.new, row.old)
			gallerytest.Denied(t, decision, row.denial)
		})
	}
}
