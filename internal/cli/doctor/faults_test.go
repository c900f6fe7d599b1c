// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// A fault breaks one thing in a healthy world.
type fault struct {
	name string
	// before changes the objects before they are created, and after breaks the running world.
	before func(*world)
	after  func(*testing.T, *world)
	// want is the check and the subject of the only finding. SERVICE and CONFIGURATION stand for those of the world.
	want string
}

var faults = []fault{
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
	{name: "nothing listens", want: "connection-refused SERVICE", after: func(_ *testing.T, w *world) { w.refuse(w.address(0), w.address(1)) }},
	{name: "nothing listens in one of two Pods", want: "connection-refused SERVICE", after: func(_ *testing.T, w *world) { w.refuse(w.address(1)) }},
	{name: "nothing answers", want: "connection-timeout SERVICE", after: func(_ *testing.T, w *world) { w.block(w.address(0), w.address(1)) }},
	{name: "a firewall between the API server and the Pods", want: "blocked SERVICE", after: func(_ *testing.T, w *world) {
		w.blockAPIServer(w.address(0), w.address(1))
	}},
	{name: "the program listens on localhost only", want: "blocked SERVICE", after: func(_ *testing.T, w *world) { w.localOnly(w.address(0), w.address(1)) }},
	{name: "HTTP instead of HTTPS", want: "not-tls SERVICE", before: func(w *world) { w.each(func(s *served) { s.plain = true }) }},
	{name: "no certificate yet", want: "handshake-failed SERVICE", before: func(w *world) { w.each(func(s *served) { s.certificate = nil }) }},
	{name: "a certificate for another name", want: "certificate-name SERVICE", before: func(w *world) { w.certificate("other." + w.namespace + ".svc") }},
	{name: "a certificate with a common name only", want: "certificate-name SERVICE", before: func(w *world) {
		w.certificate("", func(c *x509.Certificate) { c.DNSNames, c.Subject.CommonName = nil, w.host() })
	}},
	{name: "a certificate of another CA", want: "certificate-untrusted SERVICE", before: func(w *world) {
		w.ca = newAuthority(w.t)
		w.certificate(w.host())
	}},
	{name: "one of two Pods has a certificate of another CA", want: "certificate-untrusted SERVICE", before: func(w *world) {
		w.servers[1].certificate = newAuthority(w.t).serving(w.t, w.host())
	}},
	{name: "an expired certificate", want: "certificate-expired SERVICE", before: func(w *world) {
		w.certificate(w.host(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	}},
	{name: "a certificate of the future", want: "certificate-not-yet-valid SERVICE", before: func(w *world) {
		w.certificate(w.host(), func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
	}},
	{name: "a certificate that expires tomorrow", want: "certificate-expires-soon SERVICE", before: func(w *world) {
		w.certificate(w.host(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(24 * time.Hour) })
	}},
	{name: "another path", want: "wrong-path CONFIGURATION", before: func(w *world) { w.each(func(s *served) { s.path = "/other" }) }},
	{name: "the CA has expired", want: "AK503 CONFIGURATION", before: func(w *world) {
		w.ca = newAuthority(w.t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
		w.validating.Webhooks[0].ClientConfig.CABundle = w.ca.bundle
		w.certificate(w.host())
	}},
	{name: "the CA expires tomorrow", want: "AK504 CONFIGURATION", before: func(w *world) {
		w.ca = newAuthority(w.t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(24 * time.Hour) })
		w.validating.Webhooks[0].ClientConfig.CABundle = w.ca.bundle
		w.certificate(w.host())
	}},
	{name: "a URL whose host is unknown", want: "host-unknown https://nowhere.invalid", before: func(w *world) { w.url("https://nowhere.invalid" + path) }},
	{name: "a URL where nothing listens", want: "connection-refused https://" + closedPort, before: func(w *world) { w.url("https://" + closedPort + path) }},
	{name: "the caBundle is missing", want: "AK506 CONFIGURATION", before: func(w *world) { w.validating.Webhooks[0].ClientConfig.CABundle = nil }},
	{name: "the caBundle is not PEM", want: "AK502 CONFIGURATION", before: func(w *world) { w.validating.Webhooks[0].ClientConfig.CABundle = []byte("CA") }},
	{name: "the caBundle has a private key", want: "AK507 CONFIGURATION", before: func(w *world) {
		bundle := &w.validating.Webhooks[0].ClientConfig.CABundle
		*bundle = append(slices.Clone(*bundle), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret")})...)
	}},
	{name: "called for its own Pods", want: "AK201 CONFIGURATION", before: func(w *world) {
		w.rules("CREATE", "", "pods", metav1.NamespaceSystem)
	}},
	{name: "called for Secrets that its Pods need", want: "AK202 CONFIGURATION", before: func(w *world) {
		w.rules("UPDATE", "", "secrets", metav1.NamespaceSystem)
	}},
	{name: "called for kube-system", want: "AK203 CONFIGURATION", before: func(w *world) {
		w.rules("CREATE", "", "pods", w.namespace)
	}},
	{name: "called for node leases", want: "AK204 CONFIGURATION", before: func(w *world) {
		w.rules("UPDATE", "coordination.k8s.io", "leases", metav1.NamespaceSystem, w.namespace)
	}},
	{name: "called for nodes", want: "AK205 CONFIGURATION", before: func(w *world) { w.rules("CREATE", "", "nodes", w.namespace) }},
	{name: "called for token reviews", want: "AK206 CONFIGURATION", before: func(w *world) {
		w.rules("CREATE", "authentication.k8s.io", "tokenreviews", w.namespace)
	}},
	{name: "called for everything", want: "AK207 CONFIGURATION", before: func(w *world) {
		w.rules("CREATE", "*", "*", w.namespace, metav1.NamespaceSystem, corev1.NamespaceNodeLease, metav1.NamespaceDefault)
		w.validating.Webhooks[0].Rules[0].Scope = ptr.To(admissionregistrationv1.NamespacedScope)
	}},
	{name: "one replica", want: "AK210 CONFIGURATION", before: func(w *world) {
		w.deployment.Spec.Replicas = ptr.To[int32](1)
		w.pods, w.slice.Endpoints = w.pods[:1], w.slice.Endpoints[:1]
	}},
	{name: "one of two Pods is ready", want: "one-ready SERVICE", before: func(w *world) {
		w.pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		w.slice.Endpoints[1].Conditions.Ready = ptr.To(false)
	}},
	{name: "no PodDisruptionBudget", want: "no-disruption-budget SERVICE", before: func(w *world) { w.budget = nil }},
	{name: "a PodDisruptionBudget that allows all", want: "weak-disruption-budget SERVICE", before: func(w *world) {
		w.budget.Spec.MaxUnavailable = ptr.To(intstr.FromString("100%"))
	}},
	{name: "all Pods on one node", want: "one-node SERVICE", before: func(w *world) { w.pods[1].Spec.NodeName = w.pods[0].Spec.NodeName }},
}

func (w *world) each(change func(*served)) {
	for _, s := range w.servers {
		change(s)
	}
}

func (w *world) host() string { return "hook." + w.namespace + ".svc" }

// certificate makes all servers present another certificate.
func (w *world) certificate(host string, change ...func(*x509.Certificate)) {
	w.each(func(s *served) { s.certificate = w.ca.serving(w.t, host, change...) })
}

func (w *world) url(text string) {
	client := &w.validating.Webhooks[0].ClientConfig
	client.Service, client.URL = nil, &text
}

// rules sets the rules and the excluded namespaces of the webhook.
func (w *world) rules(operation admissionregistrationv1.OperationType, group, resource string, excluded ...string) {
	w.validating.Webhooks[0].Rules, w.validating.Webhooks[0].NamespaceSelector = rules(operation, group, resource), except(excluded...)
}

func TestFaults(t *testing.T) {
	r := newRig(t)
	t.Run("healthy", func(t *testing.T) {
		w := r.world(t)
		apply(definitionYAML)(t, w)
		apply(apiServiceYAML)(t, w)
		w.awaitAvailable(t, "True")
		report := r.doctor(t)
		if got := found(report); len(got) > 0 || len(report.NotChecked) > 0 {
			t.Errorf("found %q in a healthy cluster, and could not check %v", got, report.NotChecked)
		}
	})
	for _, f := range slices.Concat(faults, otherFaults, trafficFaults) {
		t.Run(f.name, func(t *testing.T) {
			var before []func(*world)
			if f.before != nil {
				before = append(before, f.before)
			}
			w := r.world(t, before...)
			if f.after != nil {
				f.after(t, w)
			}
			if got, want := found(r.doctor(t)), w.names(f.want); !slices.Equal(got, []string{want}) {
				t.Errorf("found %q, want only %q", got, want)
			}
		})
	}
}

func (w *world) names(want string) string {
	return strings.NewReplacer("NAME", w.namespace, "SERVICE", "Service "+w.namespace+"/hook", "CONFIGURATION", "ValidatingWebhookConfiguration/"+w.namespace).Replace(want)
}
