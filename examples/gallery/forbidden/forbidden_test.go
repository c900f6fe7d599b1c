// SPDX-License-Identifier: Apache-2.0

package forbidden

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestError(t *testing.T) {
	apps := metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	generated := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	rows := []struct {
		req    admissionv1.AdmissionRequest
		object metav1.Object
		want   string
	}{
		{admissionv1.AdmissionRequest{Resource: apps, Name: "shop"}, generated, `deployments.apps "shop" is forbidden: why`},
		{admissionv1.AdmissionRequest{Resource: apps}, generated, `deployments.apps "shop-" is forbidden: why`},
		{admissionv1.AdmissionRequest{Resource: apps}, &corev1.Pod{}, `deployments.apps "Unknown" is forbidden: why`},
	}
	for _, row := range rows {
		if got := Error(&row.req, row.object, "why").Error(); got != row.want {
			t.Errorf("got %s, want %s", got, row.want)
		}
	}
}
