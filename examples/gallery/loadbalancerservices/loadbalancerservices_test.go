// SPDX-License-Identifier: Apache-2.0

package loadbalancerservices

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

func service(of corev1.ServiceType) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team-a"}, Spec: corev1.ServiceSpec{Type: of}}
}

func TestHook(t *testing.T) {
	t.Parallel()
	const denial = `services "shop" is forbidden: the namespace team-a does not allow Services of type LoadBalancer; ` +
		`a cluster administrator can allow them with: kubectl label namespace team-a loadbalancerservices.example.com/allowed=true`
	inside, balancer := service(corev1.ServiceTypeClusterIP), service(corev1.ServiceTypeLoadBalancer)
	rows := []struct {
		reason       string
		service, old *corev1.Service
		denial       string
	}{
		{"a new load balancer", balancer, nil, denial},
		{"a new Service of another type", inside, nil, ""},
		{"a Service becomes a load balancer", balancer, inside, denial},
		{"a load balancer is updated", balancer, balancer, ""},
		{"a load balancer gets another type", inside, balancer, ""},
	}
	for _, row := range rows {
		op := admissionv1.Create
		if row.old != nil {
			op = admissionv1.Update
		}
		decision, _ := gallerytest.On(t, Hook(), op, corev1.SchemeGroupVersion.WithKind("Service"), "services", row.service, row.old)
		t.Run(row.reason, func(t *testing.T) { gallerytest.Denied(t, decision, row.denial) })
	}
}

func TestUpdateWithoutOldObjectFails(t *testing.T) {
	t.Parallel()
	balancer := service(corev1.ServiceTypeLoadBalancer)
	req := webhooktest.Request(t, admissionv1.Update, corev1.SchemeGroupVersion.WithKind("Service"), "services", balancer, balancer)
	req.OldObject.Raw = nil
	webhooktest.Failure(t, Hook(), req)
}

func TestNamespaceSelector(t *testing.T) {
	t.Parallel()
	_, configuration, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "test", URL: "https://127.0.0.1"}, Hook())
	if err != nil {
		t.Fatal(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(configuration.Webhooks[0].NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		labels labels.Set
		called bool
	}{
		{labels.Set{corev1.LabelMetadataName: "team-a"}, true},
		{labels.Set{corev1.LabelMetadataName: "team-a", Label: "true"}, false},
		{labels.Set{corev1.LabelMetadataName: "team-a", Label: "false"}, true},
		{labels.Set{corev1.LabelMetadataName: metav1.NamespaceSystem}, false},
	}
	for _, row := range rows {
		if selector.Matches(row.labels) != row.called {
			t.Errorf("a namespace with the labels %v: whether the API server calls the hook must be %v", row.labels, row.called)
		}
	}
}
