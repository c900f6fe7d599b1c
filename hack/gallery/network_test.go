// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	originalingress "k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass"
	originalexternal "k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/defaultingressclass"
	"github.com/admitkit/admitkit/examples/gallery/denyserviceexternalips"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func networkControllers() []*controller {
	return []*controller{{
		name: originalingress.PluginName, register: originalingress.Register, clusters: ingressClasses(),
		hooks: func(_ *testing.T, in cluster, _ string) []*webhook.Hook {
			return []*webhook.Hook{defaultingressclass.Hook(in.factory.Networking().V1().IngressClasses().Lister())}
		},
		edges: (*generator).ingressEdges, generate: (*generator).ingressRequest,
	}, {
		name: originalexternal.PluginName, register: originalexternal.Register,
		hooks: func(*testing.T, cluster, string) []*webhook.Hook {
			return []*webhook.Hook{denyserviceexternalips.Hook()}
		},
		edges: (*generator).serviceEdges, generate: (*generator).serviceRequest,
	}}
}

// ingressClasses returns clusters without a default class, with one, and with several that have equal and different ages.
func ingressClasses() [][]runtime.Object {
	class := func(name string, age time.Duration, isDefault string) *networkingv1.IngressClass {
		return &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1_000_000, 0).Add(-age)),
			Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: isDefault},
		}}
	}
	return [][]runtime.Object{
		nil,
		{class("inner", 0, "false"), class("outer", 0, "")},
		{class("inner", 0, "true"), class("outer", 0, "false")},
		{class("inner", 0, "true"), class("outer", time.Hour, "true")},
		{class("outer", time.Hour, "true"), class("inner", time.Hour, "true"), class("other", 2*time.Hour, "true")},
	}
}

func (g *generator) ingressEdges() (all []*request) {
	for _, class := range []*string{nil, ptr.To(""), ptr.To("inner"), ptr.To("gone")} {
		for _, annotations := range []map[string]string{nil, {defaultingressclass.ClassAnnotation: ""}, {defaultingressclass.ClassAnnotation: "inner"}, {"other": ""}} {
			ingress := &networkingv1.Ingress{
				ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "plain", Annotations: annotations},
				Spec:       networkingv1.IngressSpec{IngressClassName: class},
			}
			for _, op := range []admission.Operation{admission.Create, admission.Update} {
				all = append(all, onIngresses(op, "", ingress))
			}
		}
	}
	return all
}

func onIngresses(op admission.Operation, subresource string, ingress *networkingv1.Ingress) *request {
	return created(op, on(op, networkingv1.SchemeGroupVersion.WithKind("Ingress"), "ingresses", subresource, ingress, ingress.DeepCopy()))
}

func (g *generator) ingressRequest() *request {
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: pick(g, g.namespaces...).Name}}
	ingress.Spec.IngressClassName = pick(g, nil, nil, nil, ptr.To(""), ptr.To("inner"), ptr.To("gone"))
	if g.oneIn(4) {
		ingress.Annotations = map[string]string{pick(g, defaultingressclass.ClassAnnotation, "other"): pick(g, "", "inner", "outer")}
	}
	for range g.IntN(3) {
		ingress.Spec.Rules = append(ingress.Spec.Rules, networkingv1.IngressRule{Host: pick(g, "", "shop.example.com", "*.example.com")})
	}
	g.rename(ingress)
	return onIngresses(pick(g, admission.Create, admission.Create, admission.Create, admission.Update), pick(g, "", "", "", "status"), ingress)
}

func (g *generator) serviceEdges() (all []*request) {
	lists := [][]string{nil, {}, {"192.0.2.1"}, {"192.0.2.1", "192.0.2.2"}, {"192.0.2.2", "192.0.2.2"}, {"2001:db8::1"}}
	for _, ips := range lists {
		all = append(all, onServices(admission.Create, "", service(ips), nil))
		for _, old := range lists {
			all = append(all, onServices(admission.Update, "", service(ips), service(old)), onServices(admission.Update, "status", service(ips), service(old)))
		}
	}
	return all
}

func service(ips []string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "plain"}, Spec: corev1.ServiceSpec{ExternalIPs: ips}}
}

func onServices(op admission.Operation, subresource string, service, old *corev1.Service) *request {
	return on(op, corev1.SchemeGroupVersion.WithKind("Service"), "services", subresource, service, old)
}

func (g *generator) serviceRequest() *request {
	ips := func() (list []string) {
		for range g.IntN(4) {
			list = append(list, pick(g, "192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"))
		}
		return list
	}
	s, old := service(ips()), service(ips())
	s.Spec.Type = pick(g, "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	g.rename(s)
	old.Name, old.GenerateName = s.Name, s.GenerateName
	switch n := g.IntN(10); {
	case n < 3:
		return onServices(admission.Create, "", s, nil)
	case n < 8:
		return onServices(admission.Update, pick(g, "", "", "", "status"), s, old)
	case n < 9:
		return onServices(admission.Delete, "", nil, old)
	}
	return onPods(admission.Create, "", g.pod(), nil)
}
