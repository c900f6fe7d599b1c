// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

var (
	specPath     = field.NewPath("spec")
	templatePath = specPath.Child("template")
)

// A podCheck validates one pod spec.
type podCheck struct {
	*checker
	spec    *corev1.PodSpec
	at      *field.Path
	volumes map[string]*corev1.Volume
	claims  seen[string]
	names   seen[string] // of containers
	// isPod is false in a template.
	isPod bool
	// podName is the name of the Pod. It is empty in a template, or if the name is not generated yet.
	podName string
}

func (c *checker) pod(pod *corev1.Pod) {
	c.metadata(&pod.ObjectMeta, subdomainName)
	c.podSpec(pod)
	if len(pod.Spec.EphemeralContainers) > 0 {
		c.forbidden(specPath.Child("ephemeralContainers"), "cannot be set on create")
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		c.forbidden(specPath.Child("nodeName"), "cannot be set until all schedulingGates have been cleared")
	}
}

func (c *checker) podSpec(pod *corev1.Pod) {
	p := podCheck{checker: c, spec: &pod.Spec, at: specPath, isPod: true, podName: pod.Name}
	p.check()
}

// template checks a pod template. With runsForever, it allows only the restart policy Always and no
// deadline.
func (c *checker) template(at *field.Path, t *corev1.PodTemplateSpec, runsForever bool) {
	c.labelsAndAnnotations(at, &t.ObjectMeta) // the API server also omits "metadata" from these paths
	spec := at.Child("spec")
	p := podCheck{checker: c, spec: &t.Spec, at: spec}
	p.check()
	if len(t.Spec.EphemeralContainers) > 0 {
		c.forbidden(spec.Child("ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
	if !runsForever {
		return
	}
	enum(c, spec, "restartPolicy", t.Spec.RestartPolicy, corev1.RestartPolicyAlways)
	if t.Spec.ActiveDeadlineSeconds != nil {
		c.forbidden(spec.Child("activeDeadlineSeconds"), "not supported in this kind")
	}
}

func (p *podCheck) check() {
	spec := p.spec
	p.checkVolumes()
	p.checkClaims()
	p.checkContainers()
	p.checkPodResources()
	p.checkPolicies()
	p.checkNames()
	p.checkScheduling()
	p.checkNetwork()
	p.podSecurity(p.at.Child("securityContext"), spec.SecurityContext)
	p.checkHost()
	p.checkOS()
	for i, gate := range spec.ReadinessGates {
		if bad := badLabelKey(string(gate.ConditionType)); bad != nil {
			p.invalid(p.at.Child("readinessGates").Index(i).Child("conditionType"), gate.ConditionType, bad...)
		}
	}
}

func (p *podCheck) checkPolicies() {
	spec := p.spec
	enum(p.checker, p.at, "restartPolicy", spec.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	enum(p.checker, p.at, "dnsPolicy", spec.DNSPolicy, corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)
	enumIf(p.checker, p.at, "preemptionPolicy", spec.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	if seconds := spec.ActiveDeadlineSeconds; seconds != nil && (*seconds < 1 || *seconds > math.MaxInt32) {
		p.invalid(p.at.Child("activeDeadlineSeconds"), *seconds, validation.InclusiveRangeError(1, math.MaxInt32))
	}
}

func (p *podCheck) checkNames() {
	spec := p.spec
	for _, name := range [...]struct {
		child, value string
		bad          func(string) []string
	}{
		{"serviceAccountName", spec.ServiceAccountName, badSubdomain},
		{"nodeName", spec.NodeName, badSubdomain},
		{"hostname", spec.Hostname, badLabel},
		{"subdomain", spec.Subdomain, badLabel},
		{"priorityClassName", spec.PriorityClassName, badSubdomain},
	} {
		if name.value == "" {
			continue
		}
		if bad := name.bad(name.value); bad != nil {
			p.invalid(p.at.Child(name.child), name.value, bad...)
		}
	}
	if name := spec.RuntimeClassName; name != nil {
		if bad := badSubdomain(*name); bad != nil {
			p.invalid(p.at.Child("runtimeClassName"), *name, bad...)
		}
	}
}

func (p *podCheck) checkNetwork() {
	for i, alias := range p.spec.HostAliases {
		at := p.at.Child("hostAliases").Index(i)
		if netutils.ParseIPSloppy(alias.IP) == nil {
			p.invalid(at.Child("ip"), alias.IP, "must be a valid IP address")
		}
		for j, host := range alias.Hostnames {
			if bad := badSubdomain(host); bad != nil {
				p.invalid(at.Child("hostnames").Index(j), host, bad...)
			}
		}
	}
	p.checkDNS(p.at.Child("dnsConfig"), p.spec.DNSConfig)
	if p.spec.HostNetwork {
		p.checkHostNetwork()
	}
}

func (p *podCheck) checkDNS(at *field.Path, dns *corev1.PodDNSConfig) {
	const mostServers, mostSearches = 3, 32
	if dns == nil {
		if p.spec.DNSPolicy == corev1.DNSNone {
			p.required(at, "must provide `dnsConfig` when `dnsPolicy` is None")
		}
		return
	}
	if p.spec.DNSPolicy == corev1.DNSNone && len(dns.Nameservers) == 0 {
		p.required(at.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
	}
	if len(dns.Nameservers) > mostServers {
		p.invalid(at.Child("nameservers"), dns.Nameservers, "must not have more than 3 nameservers")
	}
	for i, server := range dns.Nameservers {
		if netutils.ParseIPSloppy(server) == nil {
			p.invalid(at.Child("nameservers").Index(i), server, "must be a valid IP address")
		}
	}
	if len(dns.Searches) > mostSearches {
		p.invalid(at.Child("searches"), dns.Searches, "must not have more than 32 search paths")
	}
	for i, search := range dns.Searches {
		if domain := strings.TrimSuffix(search, "."); search != "." && badSubdomain(domain) != nil {
			p.invalid(at.Child("searches").Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(domain)...)
		}
	}
	for i, option := range dns.Options {
		if option.Name == "" {
			p.required(at.Child("options").Index(i), "must not be empty")
		}
	}
}

// checkHostNetwork checks that with hostNetwork the host ports equal the container ports. A template may lack host
// ports, because they are defaulted in its Pods.
func (p *podCheck) checkHostNetwork() {
	for i := range p.spec.Containers {
		for j, port := range p.spec.Containers[i].Ports {
			if port.HostPort != 0 && port.HostPort != port.ContainerPort {
				at := p.at.Child("containers").Index(i).Child("ports").Index(j)
				p.invalid(at.Child("hostPort"), port.HostPort, "must match `containerPort` when `hostNetwork` is true")
			}
		}
	}
}

// checkClaims checks the names and sources of resource claims.
func (p *podCheck) checkClaims() {
	for i, claim := range p.spec.ResourceClaims {
		at := p.at.Child("resourceClaims").Index(i)
		if claim.Name == "" {
			p.required(at.Child("name"), "")
		} else if !p.claims.add(claim.Name) {
			p.duplicate(at.Child("name"), claim.Name)
		} else if bad := badLabel(claim.Name); bad != nil {
			p.invalid(at.Child("name"), claim.Name, bad...)
		}
		if (claim.ResourceClaimName == nil) == (claim.ResourceClaimTemplateName == nil) {
			p.invalid(at, claim.Name, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
		if name := claim.ResourceClaimName; name != nil {
			p.invalid(at.Child("resourceClaimName"), *name, badSubdomain(*name)...)
		}
		if name := claim.ResourceClaimTemplateName; name != nil {
			p.invalid(at.Child("resourceClaimTemplateName"), *name, badSubdomain(*name)...)
		}
	}
}
