// SPDX-License-Identifier: Apache-2.0

package defaultingressclass

import (
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

var kind = networkingv1.SchemeGroupVersion.WithKind("Ingress")

func class(name, isDefault string, created int64) runtime.Object {
	return &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(time.Unix(created, 0)),
		Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: isDefault},
	}}
}

func TestHook(t *testing.T) {
	inner, outer, other := class("inner", "true", 10), class("outer", "true", 20), class("other", "false", 30)
	rows := []struct {
		name        string
		classes     []runtime.Object
		annotations map[string]string
		has, want   *string
	}{
		{"no default", []runtime.Object{other}, nil, nil, nil},
		{"one default", []runtime.Object{other, inner}, nil, nil, ptr.To("inner")},
		{"the newest", []runtime.Object{inner, outer}, nil, nil, ptr.To("outer")},
		{"the first by name", []runtime.Object{class("b", "true", 10), inner, class("a", "true", 10)}, nil, nil, ptr.To("a")},
		{"the Ingress has a class", []runtime.Object{inner}, nil, ptr.To("mine"), ptr.To("mine")},
		{"the Ingress has the annotation", []runtime.Object{inner}, map[string]string{ClassAnnotation: "mine"}, nil, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			hook := Hook(networkinglisters.NewIngressClassLister(gallerytest.Lister(t, row.classes...)))
			ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: row.annotations}, Spec: networkingv1.IngressSpec{IngressClassName: row.has}}
			decision, after := gallerytest.On(t, hook, admissionv1.Create, kind, "ingresses", ingress, nil)
			gallerytest.Denied(t, decision, "")
			if got := after.Spec.IngressClassName; !ptr.Equal(got, row.want) {
				t.Errorf("got %s, want %s", ptr.Deref(got, "nil"), ptr.Deref(row.want, "nil"))
			}
		})
	}
}

type noLister struct {
	networkinglisters.IngressClassLister
}

func (noLister) List(labels.Selector) ([]*networkingv1.IngressClass, error) {
	return nil, errors.New("not indexed")
}

func TestListFails(t *testing.T) {
	req := webhooktest.Request(t, admissionv1.Create, kind, "ingresses", &networkingv1.Ingress{}, nil)
	if got := webhooktest.Failure(t, Hook(noLister{}), req).Message; got != "not indexed" {
		t.Errorf("got %q", got)
	}
}

func TestIdempotent(t *testing.T) {
	hook := func() *webhook.Hook {
		return Hook(networkinglisters.NewIngressClassLister(gallerytest.Lister(t, class("inner", "true", 10))))
	}
	backend := &networkingv1.IngressServiceBackend{Name: "shop", Port: networkingv1.ServiceBackendPort{Number: 80}}
	gallerytest.Idempotent(t, hook, &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team-a"},
		Spec:       networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: backend}},
	})
}
