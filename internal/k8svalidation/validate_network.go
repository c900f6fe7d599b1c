// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkService(c *checker, o *corev1.Service) {
	spec := &o.Spec
	enum(c, specPath, "type", spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	enum(c, specPath, "sessionAffinity", spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	c.labels(specPath, "selector", spec.Selector)
	headless := spec.ClusterIP == corev1.ClusterIPNone || len(spec.ClusterIPs) > 0 && spec.ClusterIPs[0] == corev1.ClusterIPNone
	external := spec.Type == corev1.ServiceTypeExternalName
	if len(spec.Ports) == 0 && !headless && !external {
		c.required(specPath.Child("ports"), "")
	}
	if name := strings.TrimSuffix(spec.ExternalName, "."); external && name == "" {
		c.required(specPath.Child("externalName"), "")
	} else if external {
		c.invalid(specPath.Child("externalName"), name, badSubdomain(name)...)
	}
	if headless && (spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer) {
		c.invalid(specPath.Child("clusterIPs").Index(0), corev1.ClusterIPNone, "may not be set to 'None' for this type of service")
	}
	if !c.isUpdate {
		checkServiceType(c, spec)
	}
	checkServicePorts(c, spec)
}

// checkServiceType checks the fields that only some types of Services may have.
func checkServiceType(c *checker, spec *corev1.ServiceSpec) {
	balanced := spec.Type == corev1.ServiceTypeLoadBalancer
	if spec.LoadBalancerClass != nil && !balanced {
		c.forbidden(specPath.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'")
	}
	if spec.AllocateLoadBalancerNodePorts != nil && !balanced {
		c.forbidden(specPath.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'")
	}
	open := balanced || spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0
	if spec.ExternalTrafficPolicy != "" && !open {
		c.invalid(specPath.Child("externalTrafficPolicy"), spec.ExternalTrafficPolicy, "may only be set for externally-accessible services")
	}
}

func checkServicePorts(c *checker, spec *corev1.ServiceSpec) {
	type number struct {
		protocol corev1.Protocol
		port     int32
	}
	var names seen[string]
	var numbers, nodePorts seen[number]
	inside := spec.Type == corev1.ServiceTypeClusterIP || spec.Type == ""
	for i := range spec.Ports {
		port := &spec.Ports[i]
		at := specPath.Child("ports").Index(i)
		if port.Name == "" && len(spec.Ports) > 1 {
			c.required(at.Child("name"), "")
		} else if port.Name != "" {
			c.invalid(at.Child("name"), port.Name, badLabel(port.Name)...)
			if !names.add(port.Name) {
				c.duplicate(at.Child("name"), port.Name)
			}
		}
		c.portNumber(at, "port", port.Port)
		c.protocol(at, port.Protocol)
		if target := port.TargetPort; target != intstr.FromInt32(0) && target != intstr.FromString("") {
			c.port(at.Child("targetPort"), target)
		}
		protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
		if !numbers.add(number{protocol, port.Port}) {
			c.duplicate(at, port.Port)
		}
		if port.NodePort == 0 {
			continue
		}
		if inside {
			c.forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'")
		}
		if !nodePorts.add(number{protocol, port.NodePort}) {
			c.duplicate(at.Child("nodePort"), port.NodePort)
		}
	}
}

func checkIngress(c *checker, o *networkingv1.Ingress) {
	spec := &o.Spec
	const annotation = "kubernetes.io/ingress.class"
	if class, ok := o.Annotations[annotation]; ok && !c.isUpdate && spec.IngressClassName != nil && class != *spec.IngressClassName {
		c.invalid(field.NewPath("annotations").Child(annotation), class, "must match `ingressClassName` when both are specified")
	}
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		c.invalid(specPath, "", "either `defaultBackend` or `rules` must be specified")
	}
	if spec.DefaultBackend != nil {
		checkBackend(c, specPath.Child("defaultBackend"), spec.DefaultBackend)
	}
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		at := specPath.Child("rules").Index(i)
		if rule.Host != "" {
			checkIngressHost(c, at.Child("host"), rule.Host)
		}
		if rule.HTTP == nil {
			continue
		}
		at = at.Child("http", "paths")
		if len(rule.HTTP.Paths) == 0 {
			c.required(at, "")
		}
		for j := range rule.HTTP.Paths {
			checkHTTPPath(c, at.Index(j), &rule.HTTP.Paths[j])
		}
	}
	for i, tls := range spec.TLS {
		at := specPath.Child("tls").Index(i)
		for j, host := range tls.Hosts {
			checkIngressHost(c, at.Child("hosts").Index(j), host)
		}
		if tls.SecretName != "" {
			c.invalid(at.Child("secretName"), tls.SecretName, badSubdomain(tls.SecretName)...)
		}
	}
	if name := spec.IngressClassName; name != nil {
		c.invalid(specPath.Child("ingressClassName"), *name, badSubdomain(*name)...)
	}
}

func checkIngressHost(c *checker, at *field.Path, host string) {
	if strings.Contains(host, "*") {
		c.invalid(at, host, validation.IsWildcardDNS1123Subdomain(host)...)
		return
	}
	c.invalid(at, host, badSubdomain(host)...)
}

func checkHTTPPath(c *checker, at *field.Path, rule *networkingv1.HTTPIngressPath) {
	kind := rule.PathType
	if kind == nil {
		c.required(at.Child("pathType"), "pathType must be specified")
		return
	}
	enumIf(c, at, "pathType", kind, networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)
	needed := *kind == networkingv1.PathTypeExact || *kind == networkingv1.PathTypePrefix
	if !strings.HasPrefix(rule.Path, "/") && (needed || rule.Path != "" && *kind == networkingv1.PathTypeImplementationSpecific) {
		c.invalid(at.Child("path"), rule.Path, "must be an absolute path")
	}
	checkBackend(c, at.Child("backend"), &rule.Backend)
}

func checkBackend(c *checker, at *field.Path, b *networkingv1.IngressBackend) {
	switch {
	case (b.Service == nil) == (b.Resource == nil):
		c.invalid(at, "", "one of resource and service backend is required")
		return
	case b.Service == nil:
		checkBackendResource(c, at.Child("resource"), b.Resource)
		return
	}
	if b.Service.Name == "" {
		c.required(at.Child("service", "name"), "")
	} else {
		c.invalid(at.Child("service", "name"), b.Service.Name, badLabel(b.Service.Name)...)
	}
	checkBackendPort(c, at, &b.Service.Port)
}

// checkBackendResource checks an Ingress backend that refers to an object of any kind.
func checkBackendResource(c *checker, at *field.Path, ref *corev1.TypedLocalObjectReference) {
	if ref.APIGroup != nil {
		c.invalid(at.Child("apiGroup"), *ref.APIGroup, badSubdomain(*ref.APIGroup)...)
	}
	checkPathSegment(c, at.Child("kind"), ref.Kind)
	checkPathSegment(c, at.Child("name"), ref.Name)
}

// checkPathSegment checks that a text can be a segment of a URL path.
func checkPathSegment(c *checker, at *field.Path, text string) {
	if text == "" {
		c.required(at, "")
	} else {
		c.invalid(at, text, content.IsPathSegmentName(text)...)
	}
}

func checkBackendPort(c *checker, at *field.Path, port *networkingv1.ServiceBackendPort) {
	switch {
	case (port.Name == "") == (port.Number == 0):
		c.required(at, "one of port name and number is required")
	case port.Name != "":
		c.invalid(at.Child("service", "port", "name"), port.Name, validation.IsValidPortName(port.Name)...)
	default:
		c.portNumber(at.Child("service", "port"), "number", port.Number)
	}
}
