// SPDX-License-Identifier: Apache-2.0

// Package defaultingressclass reimplements Kubernetes' admission controller DefaultIngressClass as a hook: an Ingress
// without a class gets the default one.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass. The hook differs from it in one
// point: the API server does not call it for Ingresses in kube-system or in the namespace of the webhook, so that a
// cluster can repair itself while the webhook is down.
package defaultingressclass

import (
	"cmp"
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// ClassAnnotation is the annotation that named the class of an Ingress before the field spec.ingressClassName existed.
const ClassAnnotation = "kubernetes.io/ingress.class"

// Hook returns the hook that sets the class of an Ingress.
func Hook(classes networkinglisters.IngressClassLister) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:  "defaultingressclass.example.com",
		Rules: webhook.Rules(webhook.OnCreate("networking.k8s.io", "v1", "ingresses")),
	}, func(_ context.Context, req *webhook.Request[networkingv1.Ingress]) error {
		ingress := req.Object
		if _, ok := ingress.Annotations[ClassAnnotation]; ok || ingress.Spec.IngressClassName != nil {
			return nil
		}
		class, err := defaultClass(classes)
		if class != nil {
			ingress.Spec.IngressClassName = ptr.To(class.Name)
		}
		return err
	})
}

// defaultClass returns the newest of the default classes. It returns nil if there is none.
func defaultClass(classes networkinglisters.IngressClassLister) (*networkingv1.IngressClass, error) {
	all, err := classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var newest *networkingv1.IngressClass
	for _, class := range all {
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" && (newest == nil || compare(class, newest) < 0) {
			newest = class
		}
	}
	return newest, nil
}

// compare orders classes by their creation, newest first, and then by name.
func compare(a, b *networkingv1.IngressClass) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
