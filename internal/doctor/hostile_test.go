// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// checksOf returns the IDs of the findings, except that of a missing caBundle, which no snapshot of these tests has.
func checksOf(s *Snapshot) string {
	var all []string
	for _, f := range Diagnose(s) {
		if f.Check != "AK506" {
			all = append(all, f.Check)
		}
	}
	return strings.Join(all, " ")
}

// conversionMetrics has the buckets of apiextensions-apiserver pkg/apiserver/conversion/metrics.go: powers of two.
const conversionMetrics = `# TYPE apiserver_crd_conversion_webhook_duration_seconds histogram
apiserver_crd_conversion_webhook_duration_seconds_bucket{crd_name="widgets.example.com",succeeded="true",le="0.512"} %[1]d
apiserver_crd_conversion_webhook_duration_seconds_bucket{crd_name="widgets.example.com",succeeded="true",le="1.024"} %[1]d
apiserver_crd_conversion_webhook_duration_seconds_bucket{crd_name="widgets.example.com",succeeded="true",le="2.048"} 100
apiserver_crd_conversion_webhook_duration_seconds_bucket{crd_name="widgets.example.com",succeeded="true",le="+Inf"} 100
apiserver_crd_conversion_webhook_duration_seconds_sum{crd_name="widgets.example.com",succeeded="true"} 3
apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="widgets.example.com",succeeded="true"} 100
`

// TestSlowConversion requires that fast conversions are not reported as slow. Their histogram has no bound of 1 s.
func TestSlowConversion(t *testing.T) {
	for fast, want := range map[int]string{100: "", 90: "slow"} {
		m, err := ReadMetrics(strings.NewReader(fmt.Sprintf(conversionMetrics, fast)))
		if err != nil {
			t.Fatal(err)
		}
		s := &Snapshot{Now: time.Now(), Traffic: &Traffic{Metrics: m},
			Targets: []*Target{{Kind: Conversion, Name: "widgets.example.com", Fails: true, Backend: aTarget("a", true).Backend}}}
		if got := checksOf(s); got != want {
			t.Errorf("%d of 100 are fast: found %q, want %q", fast, got, want)
		}
	}
}

// aPlace returns a snapshot with a Service and its Pods. The names of the Pods that are ready begin with "ready".
func aPlace(names ...string) *Snapshot {
	target := aTarget("a", true)
	name := target.Backend.Service
	s := &Snapshot{Now: time.Now(), Targets: []*Target{target}, SeveralNodes: true,
		Services: map[types.NamespacedName]*corev1.Service{name: {ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
			Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10", Selector: map[string]string{"app": "hook"}, Ports: []corev1.ServicePort{{Port: 443}}}}},
		Slices: map[types.NamespacedName][]discoveryv1.EndpointSlice{}, Pods: map[types.NamespacedName][]corev1.Pod{},
		Budgets: map[string][]policyv1.PodDisruptionBudget{name.Namespace: {}}}
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeIPv4} {
		slice := discoveryv1.EndpointSlice{AddressType: family, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](8443)}}}
		for i, pod := range names {
			address := map[discoveryv1.AddressType]string{discoveryv1.AddressTypeIPv4: fmt.Sprintf("10.0.0.%d", i+1), discoveryv1.AddressTypeIPv6: fmt.Sprintf("fd00::%d", i+1)}[family]
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod},
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(strings.HasPrefix(pod, "ready"))}})
		}
		s.Slices[name] = append(s.Slices[name], slice)
	}
	for i, pod := range names {
		s.Pods[name] = append(s.Pods[name], corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Labels: map[string]string{"app": "hook"}},
			Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", i)}})
	}
	return s
}

// TestDualStack requires that the two addresses of a Pod count as one endpoint: the API server uses the first family of
// the Service.
func TestDualStack(t *testing.T) {
	s := aPlace("ready-a", "b")
	s.Budgets = nil
	if got := s.Endpoints(s.Targets[0].Backend); len(got) != 1 || got[0].Address != "10.0.0.1" {
		t.Errorf("the endpoints are %v", got)
	}
	if got := checksOf(s); got != "one-ready" {
		t.Errorf("found %q, want one-ready", got)
	}
	s = aPlace("a", "b")
	f := s.place(s.Targets[0].Backend, nil)
	if f == nil || f.Check != "endpoints-not-ready" || !strings.Contains(f.Evidence[0], "has 2 Pods") {
		t.Errorf("found %+v, want 2 Pods that are not ready", f)
	}
}

// TestEndedPods requires that Pods which have ended or are being deleted do not count: evicted Pods stay for long.
func TestEndedPods(t *testing.T) {
	s := aPlace("ready-a", "evicted", "deleted")
	pods := s.Pods[s.Targets[0].Backend.Service]
	pods[1].Status.Phase = corev1.PodFailed
	pods[2].DeletionTimestamp = ptr.To(metav1.Now())
	if got := checksOf(s); got != "" {
		t.Errorf("found %q", got)
	}
}

// TestTerminatingEndpoints requires that terminating endpoints count if no other is ready, as in kube-proxy
// (pkg/proxy/topology.go, CategorizeEndpoints).
func TestTerminatingEndpoints(t *testing.T) {
	s := aPlace("a")
	for _, slice := range s.Slices[s.Targets[0].Backend.Service] {
		slice.Endpoints[0].Conditions.Serving, slice.Endpoints[0].Conditions.Terminating = ptr.To(true), ptr.To(true)
	}
	if f := s.place(s.Targets[0].Backend, nil); f != nil {
		t.Errorf("found %+v", f)
	}
}

// TestPortsOfOneNumber requires that the TCP port counts if a Service has the same number for UDP.
func TestPortsOfOneNumber(t *testing.T) {
	s := aPlace("ready-a")
	name := s.Targets[0].Backend.Service
	s.Services[name].Spec.Ports = []corev1.ServicePort{{Name: "quic", Port: 443, Protocol: corev1.ProtocolUDP}, {Name: "https", Port: 443, Protocol: corev1.ProtocolTCP}}
	for i := range s.Slices[name] {
		s.Slices[name][i].Ports = []discoveryv1.EndpointPort{{Name: ptr.To("quic"), Port: ptr.To[int32](9443)}, {Name: ptr.To("https"), Port: ptr.To[int32](8443)}}
	}
	if got := s.Endpoints(s.Targets[0].Backend); len(got) != 1 || got[0].Port != 8443 {
		t.Errorf("the endpoints are %v", got)
	}
}

// TestBudgets requires that Pods of two workloads may have a budget each, and that Pods of the kubelet need none.
func TestBudgets(t *testing.T) {
	s := aPlace("ready-a", "ready-b")
	name := s.Targets[0].Backend.Service
	if got := checksOf(s); got != "no-disruption-budget" {
		t.Errorf("found %q, want no-disruption-budget", got)
	}
	for i, part := range []string{"blue", "green"} {
		s.Pods[name][i].Labels["part"] = part
		s.Budgets[name.Namespace] = append(s.Budgets[name.Namespace], policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: part},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"part": part}}}})
	}
	if got := checksOf(s); got != "" {
		t.Errorf("found %q", got)
	}
	s = aPlace("ready-a", "ready-b")
	for i := range s.Pods[name] {
		s.Pods[name][i].OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Controller: ptr.To(true)}}
	}
	if got := checksOf(s); got != "" {
		t.Errorf("found %q for static Pods", got)
	}
}

// TestFromThisMachine requires that a URL which only this machine fails to reach makes no claim about the API server,
// unless its calls fail, too.
func TestFromThisMachine(t *testing.T) {
	address := Backend{URL: "https://hook.corp.example"}
	target := &Target{Kind: Validating, Name: "a", Webhook: "a.example.com", Fails: true, Backend: address}
	for problem := range checkOfProblem {
		s := &Snapshot{Now: time.Now(), Targets: []*Target{target}, Failures: map[*Target][]string{},
			Connections: map[Backend][]Connection{address: {{Address: "hook.corp.example:443", Via: "from this machine", Problem: problem, Error: "x"}}}}
		found := Diagnose(s)
		want := problem == NotTLS || problem == Alert // then the server was reached
		for _, f := range found {
			if f.Check == checkOfProblem[problem] && f.Rejects != want {
				t.Errorf("problem %d: found %+v", problem, f)
			}
		}
		s.Failures[target] = []string{"no such host"}
		if found := Diagnose(s); !found[0].Rejects {
			t.Errorf("problem %d: a dry run failed, and requests are not rejected: %+v", problem, found)
		}
	}
}

// TestCertificateOfOtherClock requires that the time is that of the snapshot.
func TestCertificateOfOtherClock(t *testing.T) {
	target := aTarget("a", true)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	leaf := &x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), DNSNames: []string{target.Backend.Host()}}
	s := &Snapshot{Now: now, ExpiresWithin: time.Hour, Targets: []*Target{target}}
	if got := s.validity(target, &Connection{Chain: []*x509.Certificate{leaf}}); len(got) > 0 {
		t.Errorf("found %+v", got)
	}
}
