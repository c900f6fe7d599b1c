// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/k8svalidation/internal/defaults"
)

const quotaPrefix = "requests."

func (p *containerCheck) containerResources(at *field.Path, r *corev1.ResourceRequirements) {
	p.requirements(at, r, badContainerResource)
	var names, parts seen[string]
	for i, claim := range r.Claims {
		at := at.Child("claims").Index(i)
		key := claim.Name + "/" + claim.Request
		switch {
		case claim.Name == "":
			p.required(at, "")
			continue
		case names.has(claim.Name), claim.Request == "" && parts.has(claim.Name), !parts.add(key):
			p.duplicate(at, claim.Name)
		case claim.Request == "":
			names.add(claim.Name)
		default:
			parts.add(claim.Name)
			p.invalid(at.Child("request"), claim.Request, badLabel(claim.Request)...)
		}
		if !p.claims.has(claim.Name) {
			p.add(field.NotFound(at, claim.Name))
		}
	}
}

// requirements checks quantities, and that no request exceeds its limit.
func (c *checker) requirements(at *field.Path, r *corev1.ResourceRequirements, badName func(string) []string) {
	pages, base := false, false
	note := func(name corev1.ResourceName) {
		pages = pages || defaults.IsHugePages(name)
		base = base || name == corev1.ResourceCPU || name == corev1.ResourceMemory
	}
	for name, q := range r.Limits {
		note(name)
		c.resource(at, "limits", name, q, badName)
	}
	for name, q := range r.Requests {
		note(name)
		c.resource(at, "requests", name, q, badName)
		limit, limited := r.Limits[name]
		flexible := isNative(name) && !defaults.IsHugePages(name)
		switch {
		case !limited && !flexible:
			c.required(at.Child("limits"), "Limit must be set for non overcommitable resources")
		case limited && !flexible && q.Cmp(limit) != 0:
			c.invalid(at.Child("requests"), q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
		case limited && q.Cmp(limit) > 0:
			c.invalid(at.Child("requests"), q.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))
		}
	}
	if pages && !base {
		c.forbidden(at, "HugePages require cpu or memory")
	}
}

func (c *checker) resource(at *field.Path, child string, name corev1.ResourceName, q resource.Quantity, badName func(string) []string) {
	if bad := badName(string(name)); bad != nil {
		c.invalid(at.Child(child).Key(string(name)), name, bad...)
	}
	if q.Sign() < 0 {
		c.invalid(at.Child(child).Key(string(name)), q.String(), "must be greater than or equal to 0")
	}
	if isExtended(string(name)) && q.MilliValue()%1000 != 0 {
		c.invalid(at.Child(child).Key(string(name)), q.String(), "must be an integer")
	}
	if defaults.IsHugePages(name) && !isWholePages(name, q) {
		c.invalid(at.Child(child).Key(string(name)), q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), name))
	}
}

func isWholePages(name corev1.ResourceName, q resource.Quantity) bool {
	page, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	return err == nil && page.Sign() > 0 && page.MilliValue()%1000 == 0 && page.Value() > 0 && q.Value()%page.Value() == 0
}

// isNative reports whether Kubernetes itself defines the resource. Only native resources can be
// overcommitted.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func isExtended(name string) bool {
	return !isNative(corev1.ResourceName(name)) && !strings.HasPrefix(name, quotaPrefix) && badLabelKey(quotaPrefix+name) == nil
}

func badContainerResource(name string) []string {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return nil
	}
	if bad := badLabelKey(name); bad != nil {
		return bad
	}
	if !strings.Contains(name, "/") && !defaults.IsHugePages(corev1.ResourceName(name)) {
		return []string{"must be a standard resource for containers"}
	}
	if !isNative(corev1.ResourceName(name)) && !isExtended(name) {
		return []string{"doesn't follow extended resource name standard"}
	}
	return nil
}

func badPodResource(name string) []string {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory:
		return nil
	}
	if defaults.IsHugePages(corev1.ResourceName(name)) {
		return validation.IsQualifiedName(name)
	}
	return []string{"is not supported for a pod as a whole"}
}

// checkPodResources checks the resources of the Pod as a whole.
func (p *podCheck) checkPodResources() {
	if p.spec.Overhead != nil {
		p.requirements(p.at.Child("overhead"), &corev1.ResourceRequirements{Limits: p.spec.Overhead}, badContainerResource)
	}
	r := p.spec.Resources
	if r == nil {
		return
	}
	at := p.at.Child("resources")
	if r.Claims != nil {
		p.forbidden(at.Child("claims"), "claims may not be set for Resources at pod-level")
	}
	p.requirements(at, r, badPodResource)
	for name, total := range defaults.Aggregate(p.spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }) {
		if request, ok := r.Requests[name]; ok && total.Cmp(request) > 0 {
			p.invalid(at.Child("requests").Key(string(name)), request.String(), "must be greater than or equal to aggregate container requests of "+total.String())
		}
	}
	for i := range p.spec.Containers {
		for name, limit := range p.spec.Containers[i].Resources.Limits {
			if most, ok := r.Limits[name]; ok && limit.Cmp(most) > 0 {
				p.invalid(at.Child("containers").Index(i).Key(string(name)).Child("limits"), limit.String(), "must be less than or equal to pod limits of "+most.String())
			}
		}
	}
}

func (p *containerCheck) resizePolicies(at *field.Path, policies []corev1.ContainerResizePolicy) {
	var names seen[corev1.ResourceName]
	for i, policy := range policies {
		if policy.ResourceName != corev1.ResourceCPU && policy.ResourceName != corev1.ResourceMemory {
			p.add(field.NotSupported(at, policy.ResourceName, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}))
		}
		if !names.add(policy.ResourceName) {
			p.duplicate(at.Index(i), policy.ResourceName)
		}
		if policy.RestartPolicy != corev1.NotRequired && policy.RestartPolicy != corev1.RestartContainer {
			p.add(field.NotSupported(at, policy.RestartPolicy, []corev1.ResourceResizeRestartPolicy{corev1.NotRequired, corev1.RestartContainer}))
		} else if p.spec.RestartPolicy == corev1.RestartPolicyNever && policy.RestartPolicy == corev1.RestartContainer {
			p.invalid(at, policy.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}
