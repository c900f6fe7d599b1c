// SPDX-License-Identifier: Apache-2.0

package denyserviceexternalips

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
)

func service(ips ...string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: corev1.ServiceSpec{ExternalIPs: ips}}
}

func TestHook(t *testing.T) {
	const denial = `services "shop" is forbidden: Use of external IPs is denied by admission control`
	rows := []struct {
		name     string
		new, old *corev1.Service
		denial   string
	}{
		{"a new Service without external IPs", service(), nil, ""},
		{"a new Service with an external IP", service("192.0.2.1"), nil, denial},
		{"an update keeps one", service("192.0.2.1", "192.0.2.1"), service("192.0.2.2", "192.0.2.1"), ""},
		{"an update removes all", service(), service("192.0.2.1"), ""},
		{"an update adds one", service("192.0.2.1", "192.0.2.2"), service("192.0.2.1"), denial},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			op := admissionv1.Create
			if row.old != nil {
				op = admissionv1.Update
			}
			decision, _ := gallerytest.On(t, Hook(), op, corev1.SchemeGroupVersion.WithKind("Service"), "services", row.new, row.old)
			gallerytest.Denied(t, decision, row.denial)
		})
	}
}
