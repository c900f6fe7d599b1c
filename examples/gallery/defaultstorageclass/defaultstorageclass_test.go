// SPDX-License-Identifier: Apache-2.0

package defaultstorageclass

import (
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

var kind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")

func class(name, annotation string, created int64) runtime.Object {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{annotation: "true"}, CreationTimestamp: metav1.NewTime(time.Unix(created, 0)),
	}}
}

func TestHook(t *testing.T) {
	slow, fast, other := class("slow", Annotation, 10), class("fast", BetaAnnotation, 20), class("other", "example.com/a", 30)
	annotated := map[string]string{corev1.BetaStorageClassAnnotation: ""}
	rows := []struct {
		name        string
		classes     []runtime.Object
		annotations map[string]string
		has, want   *string
	}{
		{"no default", []runtime.Object{other}, nil, nil, nil},
		{"one default", []runtime.Object{other, slow}, nil, nil, ptr.To("slow")},
		{"the newest", []runtime.Object{slow, fast}, nil, nil, ptr.To("fast")},
		{"the first by name", []runtime.Object{class("b", Annotation, 10), slow, class("a", Annotation, 10)}, nil, nil, ptr.To("a")},
		{"the claim has a class", []runtime.Object{slow}, nil, ptr.To("mine"), ptr.To("mine")},
		{"no class by choice", []runtime.Object{slow}, nil, ptr.To(""), ptr.To("")},
		{"the claim has the annotation", []runtime.Object{slow}, annotated, nil, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			hook := Hook(storagelisters.NewStorageClassLister(gallerytest.Lister(t, row.classes...)))
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Annotations: row.annotations}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: row.has}}
			decision, after := gallerytest.On(t, hook, admissionv1.Create, kind, "persistentvolumeclaims", claim, nil)
			gallerytest.Denied(t, decision, "")
			if got := after.Spec.StorageClassName; !ptr.Equal(got, row.want) {
				t.Errorf("got %s, want %s", ptr.Deref(got, "nil"), ptr.Deref(row.want, "nil"))
			}
		})
	}
}

type noLister struct {
	storagelisters.StorageClassLister
}

func (noLister) List(labels.Selector) ([]*storagev1.StorageClass, error) {
	return nil, errors.New("not indexed")
}

func TestListFails(t *testing.T) {
	req := webhooktest.Request(t, admissionv1.Create, kind, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, nil)
	if got := webhooktest.Failure(t, Hook(noLister{}), req).Message; got != "not indexed" {
		t.Errorf("got %q", got)
	}
}

func TestIdempotent(t *testing.T) {
	hook := func() *webhook.Hook {
		return Hook(storagelisters.NewStorageClassLister(gallerytest.Lister(t, class("slow", Annotation, 10))))
	}
	gallerytest.Idempotent(t, hook, &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "team-a"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
}
