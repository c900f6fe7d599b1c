// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/textutil"
)

// places reports Services that do not lead to a ready Pod.
func places(s *Snapshot) []Finding {
	var found []Finding
	order, of := s.backends()
	for _, b := range order {
		if f := s.place(b, of[b]); f != nil {
			found = append(found, *f)
		}
	}
	return found
}

// IsPlaced reports whether the cluster leads calls of the backend to a ready Pod, as far as is known. It is true for a
// URL.
func (s *Snapshot) IsPlaced(b Backend) bool { return s.place(b, nil) == nil }

// place follows a call from the API server to a ready Pod: namespace, Service, port, endpoints. It returns the first
// problem, or nil.
func (s *Snapshot) place(b Backend, targets []*Target) *Finding {
	if !b.IsService() || b.IsAPIServer() {
		return nil
	}
	name, in := b.Service, namespaceFlag(b.Service.Namespace)
	fault := func(check string, commands []string, evidence ...string) *Finding {
		f := find(check, b.String(), targets, evidence...).with(commands...)
		return &f
	}
	namespace, known := s.Namespaces[name.Namespace]
	switch {
	case known && namespace == nil:
		return fault("namespace-missing", nil, fmt.Sprintf("there is no Namespace %s", name.Namespace))
	case known && namespace.DeletionTimestamp != nil:
		return fault("namespace-terminating", []string{"kubectl get namespace " + name.Namespace + " -o yaml"},
			fmt.Sprintf("Namespace %s is being deleted since %s%s", name.Namespace, namespace.DeletionTimestamp.UTC().Format(time.RFC3339), remaining(namespace)))
	}
	service, known := s.Services[name]
	switch {
	case !known:
		return nil
	case service == nil:
		return fault("service-missing", []string{"kubectl " + in + " get services"}, fmt.Sprintf("there is no Service %s", name))
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return nil
	case service.Spec.ClusterIP == corev1.ClusterIPNone:
		return fault("service-headless", nil, fmt.Sprintf("clusterIP of the Service %s is None, so the API server has no address to call", name))
	}
	port := portOf(service, b.Port)
	if port == nil {
		return fault("service-port", nil, fmt.Sprintf("the API server calls port %d, and the Service %s has %s", b.Port, name, portsOf(service)))
	}
	return s.placeOnPods(service, *port, fault)
}

// portOf returns the TCP port of a Service with this number, or else any other one, or nil.
func portOf(s *corev1.Service, number int32) (found *corev1.ServicePort) {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.Port == number && (found == nil || p.Protocol == corev1.ProtocolTCP) {
			found = p
		}
	}
	return found
}

// remaining returns ": " and the reason why the deletion of a namespace has not ended, or "".
func remaining(n *corev1.Namespace) string {
	for _, c := range n.Status.Conditions {
		if (c.Type == corev1.NamespaceContentRemaining || c.Type == corev1.NamespaceFinalizersRemaining) && c.Status == corev1.ConditionTrue {
			return ": " + strings.TrimSuffix(c.Message, ".")
		}
	}
	return ""
}

func portsOf(s *corev1.Service) string {
	var ports []string
	for _, p := range s.Spec.Ports {
		ports = append(ports, fmt.Sprint(p.Port))
	}
	if len(ports) == 1 {
		return "only port " + ports[0]
	}
	return "the ports " + textutil.Join(ports, "and")
}

// placeOnPods checks the endpoints of a port of a Service.
func (s *Snapshot) placeOnPods(service *corev1.Service, port corev1.ServicePort, fault func(string, []string, ...string) *Finding) *Finding {
	name, in := nameOf(service), namespaceFlag(service.Namespace)
	slices, slicesKnown := s.Slices[name]
	pods, podsKnown := s.Pods[name]
	all, ready := endpoints(service, slices, port.Name)
	selector := labels.SelectorFromSet(service.Spec.Selector).String()
	list := Backend{Service: name}.podCommands(service)
	switch {
	case !slicesKnown || len(ready) > 0:
		return nil
	case len(service.Spec.Selector) == 0:
		return fault("no-endpoints", []string{"kubectl " + in + " get endpointslices -l " + discoveryv1.LabelServiceName + "=" + service.Name},
			fmt.Sprintf("the Service %s has no selector, and no EndpointSlice has a ready address for it", name))
	case podsKnown && len(pods) == 0:
		return fault("no-endpoints", []string{list[0], "kubectl " + in + " get deployments,statefulsets,daemonsets"},
			append([]string{fmt.Sprintf("no Pod in namespace %s has the labels %s", service.Namespace, selector)}, s.stopped(service)...)...)
	case podsKnown && port.TargetPort.Type == intstr.String && !havePort(pods, port.TargetPort.StrVal):
		return fault("target-port", []string{"kubectl " + in + " get service " + service.Name + " -o yaml"},
			fmt.Sprintf("targetPort of the Service %s is %s, and no container of its Pods has a port of this name", name, port.TargetPort.StrVal))
	}
	evidence := []string{fmt.Sprintf("the Service %s has %s, and none is ready", name, textutil.Count(max(len(all), len(pods)), "Pod"))}
	for _, p := range pods[:min(len(pods), maxEvidence)] {
		evidence = append(evidence, fmt.Sprintf("Pod %s: %s", p.Name, stateOf(&p)))
	}
	return fault("endpoints-not-ready", list, evidence...)
}

// maxEvidence limits the Pods that a finding names.
const maxEvidence = 5

// podCommands returns commands that show the Pods of a Service.
func (b Backend) podCommands(service *corev1.Service) []string {
	on := namespaceFlag(b.Service.Namespace) + " "
	selector := " -l " + textutil.ShellQuote(labels.SelectorFromSet(service.Spec.Selector).String())
	return []string{"kubectl " + on + "get pods" + selector, "kubectl " + on + "describe pods" + selector}
}

// stopped returns a sentence for each workload of a Service that is scaled to no Pods.
func (s *Snapshot) stopped(service *corev1.Service) (evidence []string) {
	for _, w := range s.workloadsOf(service) {
		if w.replicas == 0 {
			evidence = append(evidence, fmt.Sprintf("%s has 0 replicas", w))
		}
	}
	return evidence
}

// endpoints returns the endpoints for a named port of a Service, and those that get connections: the ready ones, or if
// there are none, those that terminate and still serve (kubernetes pkg/proxy/topology.go, CategorizeEndpoints). The name
// is empty if the Service has one port without a name. Of a Service with IPv4 and IPv6, only the family of the clusterIP
// counts, which the API server calls.
func endpoints(service *corev1.Service, all []discoveryv1.EndpointSlice, port string) (every, ready []Endpoint) {
	var ending []Endpoint
	for _, slice := range all {
		if !isFamily(slice.AddressType, service.Spec.ClusterIP) {
			continue
		}
		for _, p := range slice.Ports {
			if p.Port == nil || p.Name != nil && *p.Name != port || p.Name == nil && port != "" {
				continue
			}
			for _, e := range slice.Endpoints {
				if len(e.Addresses) == 0 {
					continue
				}
				one := Endpoint{Address: e.Addresses[0], Port: *p.Port}
				if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
					one.Pod = e.TargetRef.Name
				}
				every = append(every, one)
				switch c := e.Conditions; {
				case ptr.Deref(c.Ready, true):
					ready = append(ready, one)
				case ptr.Deref(c.Serving, false) && ptr.Deref(c.Terminating, false):
					ending = append(ending, one)
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	return every, ready
}

// isFamily reports whether addresses of a type belong to a cluster IP, as far as it is known.
func isFamily(of discoveryv1.AddressType, clusterIP string) bool {
	ip, err := netip.ParseAddr(clusterIP)
	return err != nil || of == "" || ip.Is4() == (of == discoveryv1.AddressTypeIPv4)
}

// An Endpoint is an address behind a Service.
type Endpoint struct {
	Address string
	Port    int32
	Pod     string // the name of the Pod, or "" if it is unknown
}

// Endpoints returns the ready endpoints of a backend, if it is a Service with Pods.
func (s *Snapshot) Endpoints(b Backend) []Endpoint {
	service := s.Services[b.Service]
	if service == nil {
		return nil
	}
	port := portOf(service, b.Port)
	if port == nil {
		return nil
	}
	_, ready := endpoints(service, s.Slices[b.Service], port.Name)
	return ready
}

// running returns the Pods of a Service that have not ended and are not being deleted. Evicted Pods stay for long.
func (s *Snapshot) running(service types.NamespacedName) (pods []corev1.Pod) {
	for _, p := range s.Pods[service] {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
			pods = append(pods, p)
		}
	}
	return pods
}

// havePort reports whether a container of a Pod has a port with this name.
func havePort(pods []corev1.Pod, port string) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
		})
	})
}

// stateOf returns the reason why a Pod is not ready.
func stateOf(p *corev1.Pod) string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			text := fmt.Sprintf("container %s is waiting: %s", c.Name, c.State.Waiting.Reason)
			if last := c.LastTerminationState.Terminated; last != nil {
				text += fmt.Sprintf("; it ended with exit code %d (%s)", last.ExitCode, last.Reason)
			}
			return text
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("container %s ended with exit code %d (%s)", c.Name, c.State.Terminated.ExitCode, c.State.Terminated.Reason)
		}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		for _, c := range p.Status.Conditions {
			if c.Type == kind && c.Status != corev1.ConditionTrue && c.Message != "" {
				return strings.TrimSuffix(c.Message, ".")
			}
		}
	}
	if p.DeletionTimestamp != nil {
		return "it is being deleted"
	}
	return "its phase is " + string(p.Status.Phase)
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
