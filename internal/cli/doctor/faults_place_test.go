// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// placeFaults are between the registration and a ready Pod.
var placeFaults = []fault{
	{name: "the Service is missing", before: func(w *world) { w.service = nil }, want: "service-missing SERVICE"},
	{name: "the namespace is being deleted", want: "namespace-terminating SERVICE", after: func(t *testing.T, w *world) {
		must(t, w.client.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
	}},
	{name: "the namespace does not exist", want: "namespace-missing Service gone/hook", before: func(w *world) {
		w.validating.Webhooks[0].ClientConfig.Service.Namespace = "gone"
	}},
	{name: "the Service has another port", want: "service-port SERVICE", before: func(w *world) {
		w.validating.Webhooks[0].ClientConfig.Service.Port = ptr.To[int32](hookPort)
	}},
	{name: "the Service is headless", want: "service-headless SERVICE", before: func(w *world) { w.service.Spec.ClusterIP = corev1.ClusterIPNone }},
	{name: "the selector of the Service matches nothing", want: "no-endpoints SERVICE", before: func(w *world) {
		w.service.Spec.Selector = map[string]string{"app": "hooks"}
		w.slice.Endpoints = nil
	}},
	{name: "the Pods are not ready", want: "endpoints-not-ready SERVICE", before: func(w *world) {
		for i, p := range w.pods {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "containers with unready status: [hook]"}}
			w.slice.Endpoints[i].Conditions.Ready = ptr.To(false)
		}
	}},
	{name: "the targetPort has no such name", want: "target-port SERVICE", before: func(w *world) {
		w.service.Spec.Ports[0].TargetPort.StrVal = "webhook"
		w.slice.Ports = nil
	}},
}

// networkFaults are between the API server and the program.
var networkFaults = []fault{
	{name: "nothing listens", want: "connection-refused SERVICE", after: func(_ *testing.T, w *world) { w.refuse(w.address(0), w.address(1)) }},
	{name: "nothing listens in one of two Pods", want: "connection-refused SERVICE", after: func(_ *testing.T, w *world) { w.refuse(w.address(1)) }},
	{name: "nothing answers", want: "connection-timeout SERVICE", after: func(_ *testing.T, w *world) { w.block(w.address(0), w.address(1)) }},
	{name: "a firewall between the API server and the Pods", want: "blocked SERVICE", after: func(_ *testing.T, w *world) {
		w.blockAPIServer(w.address(0), w.address(1))
	}},
	{name: "the program listens on localhost only", want: "blocked SERVICE", after: func(_ *testing.T, w *world) { w.localOnly(w.address(0), w.address(1)) }},
	{name: "a URL whose host is unknown", want: "host-unknown https://nowhere.invalid", before: func(w *world) { w.url("https://nowhere.invalid" + path) }},
	{name: "a URL where nothing listens", want: "connection-refused https://" + closedPort, before: func(w *world) { w.url("https://" + closedPort + path) }},
}
