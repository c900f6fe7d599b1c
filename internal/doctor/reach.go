// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/internal/textutil"
)

// A Proxied is the result of a GET through the API server's proxy for Services. The API server then connects to a Pod
// itself, over the same network as for a webhook.
type Proxied struct {
	// Problem is Refused, Silent, Broken, or 0 if a server answered.
	Problem Problem
	Error   string
}

// blocked reports Services that the API server cannot reach although their Pods are ready.
func blocked(s *Snapshot) []Finding {
	var found []Finding
	order, of := s.backends()
	for _, b := range order {
		p := s.Proxied[b]
		if p.Problem == 0 || !s.IsPlaced(b) || s.hasProblem(b) {
			continue // the connection from here failed, too, and another check reports it
		}
		check := map[Problem]string{Refused: "connection-refused", Silent: "blocked", Broken: "blocked"}[p.Problem]
		evidence := []string{"the API server's proxy for Services: " + p.Error}
		if reached := slices.IndexFunc(s.Connections[b], func(c Connection) bool { return len(c.Chain) > 0 }); reached >= 0 {
			c := s.Connections[b][reached]
			evidence = append(evidence, fmt.Sprintf("%s answers when it is tried %s", c.String(), c.Via))
		}
		evidence = append(evidence, s.closingPolicies(b)...)
		found = append(found, find(check, b.String(), of[b], evidence...).with("kubectl "+namespaceFlag(b.Service.Namespace)+" get networkpolicies -o yaml"))
	}
	return found
}

// hasProblem reports whether a connection to a backend failed. The API server may have used the same Pod.
func (s *Snapshot) hasProblem(b Backend) bool {
	return slices.ContainsFunc(s.Connections[b], func(c Connection) bool { return c.Problem != 0 })
}

// policies reports NetworkPolicies that may block the API server, unless it is known to reach the Pods.
func policies(s *Snapshot) []Finding {
	var found []Finding
	order, of := s.backends()
	for _, b := range order {
		if _, tried := s.Proxied[b]; tried || !s.IsPlaced(b) {
			continue
		}
		if evidence := s.closingPolicies(b); len(evidence) > 0 {
			found = append(found, find("network-policy", b.String(), of[b], evidence...).with("kubectl "+namespaceFlag(b.Service.Namespace)+" get networkpolicies -o yaml"))
		}
	}
	return found
}

// closingPolicies returns a sentence if NetworkPolicies select a Pod of a backend, and none opens its port to addresses
// outside of Pods. The API server is usually not a Pod.
func (s *Snapshot) closingPolicies(b Backend) []string {
	for _, e := range s.Endpoints(b) {
		at := slices.IndexFunc(s.Pods[b.Service], func(p corev1.Pod) bool { return p.Name == e.Pod })
		if at < 0 {
			continue
		}
		pod := s.Pods[b.Service][at]
		var names []string
		open := false
		for _, p := range s.Policies[b.Service.Namespace] {
			if isolates(&p, &pod) {
				names = append(names, p.Name)
				open = open || slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool { return opens(r, &pod, e.Port) })
			}
		}
		if len(names) > 0 && !open {
			verb := "does not open"
			if len(names) > 1 {
				verb = "do not open"
			}
			return []string{fmt.Sprintf("NetworkPolicy %s in namespace %s %s port %d of Pod %s to addresses that are not Pods", textutil.Join(names, "and"), b.Service.Namespace, verb, e.Port, pod.Name)}
		}
	}
	return nil
}

// isolates reports whether a policy limits the connections to a Pod.
func isolates(p *networkingv1.NetworkPolicy, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
	ingress := len(p.Spec.PolicyTypes) == 0 || slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
	return err == nil && ingress && selector.Matches(labels.Set(pod.Labels))
}

// opens reports whether a rule opens a port to everything or to a block of addresses.
func opens(r networkingv1.NetworkPolicyIngressRule, pod *corev1.Pod, port int32) bool {
	if len(r.From) > 0 && !slices.ContainsFunc(r.From, func(p networkingv1.NetworkPolicyPeer) bool { return p.IPBlock != nil }) {
		return false
	}
	return len(r.Ports) == 0 || slices.ContainsFunc(r.Ports, func(p networkingv1.NetworkPolicyPort) bool {
		if p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
			return false
		}
		switch {
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			return portNamed(pod, p.Port.StrVal) == port
		case p.EndPort != nil:
			return p.Port.IntVal <= port && port <= *p.EndPort
		}
		return p.Port.IntVal == port
	})
}

// portNamed returns the container port with this name, or 0.
func portNamed(pod *corev1.Pod, name string) int32 {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			if p.Name == name {
				return p.ContainerPort
			}
		}
	}
	return 0
}
