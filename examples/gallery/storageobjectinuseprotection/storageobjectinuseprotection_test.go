// SPDX-License-Identifier: Apache-2.0

package storageobjectinuseprotection

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
)

func check[T any, P interface {
	*T
	metav1.Object
}](t *testing.T, kind schema.GroupVersionKind, resource, finalizer string) {
	t.Helper()
	for _, before := range [][]string{nil, {finalizer}, {"example.com/a"}} {
		object := P(new(T))
		object.SetName("a")
		object.SetFinalizers(before)
		decision, after := gallerytest.On(t, Hook(), admissionv1.Create, kind, resource, (*T)(object), nil)
		gallerytest.Denied(t, decision, "")
		want := before
		if !slices.Contains(before, finalizer) {
			want = append(slices.Clone(before), finalizer)
		}
		if got := P(after).GetFinalizers(); !slices.Equal(got, want) {
			t.Errorf("%s with the finalizers %v: got %v", resource, before, got)
		}
	}
}

func TestHook(t *testing.T) {
	check[corev1.PersistentVolume](t, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), "persistentvolumes", VolumeFinalizer)
	check[corev1.PersistentVolumeClaim](t, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", ClaimFinalizer)
	check[storagev1.VolumeAttributesClass](t, storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass"), "volumeattributesclasses", AttributesClassFinalizer)
}
