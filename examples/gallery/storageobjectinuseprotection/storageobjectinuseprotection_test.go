// SPDX-License-Identifier: Apache-2.0

package storageobjectinuseprotection

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

func TestIdempotent(t *testing.T) {
	gallerytest.Idempotent(t, Hook,
		&corev1.PersistentVolume{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
			ObjectMeta: metav1.ObjectMeta{Name: "disk"},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
			},
		},
		&corev1.PersistentVolumeClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "team-a"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		},
		&storagev1.VolumeAttributesClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttributesClass"},
			ObjectMeta: metav1.ObjectMeta{Name: "fast"},
			DriverName: "example.com",
			Parameters: map[string]string{"iops": "100"},
		},
	)
}
