// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// C13 to C26: correct webhooks that fill in fields of Pods.

func correctDefaulters() []Case {
	return []Case{
		onPods("C13 images from the mirror, also in updates", mirrored).on(create, update),
		onPods("C14 Pod security: restricts what is unset", restricted),
		onPods("C15 drops all capabilities", dropsAll),
		onPods("C16 toleration for containers with an accelerator", acceleratorTolerated).samples(acceleratorPod("1")),
		onPods("C17 adds the spot toleration, also in updates", spotTolerated).on(create, update).
			registered(onlyLabelled("example.com/spot", "allowed")).samples(labelledPod("example.com/spot", "allowed")),
		onPods("C18 spreads over zones by its own label", spreadOverZones),
		onPods("C19 prefers a pool of nodes", prefersPool),
		podCase("C20 defaults the priority class, operations by hand", ofHandler(byHand(priorityDefault))).
			registered(onPlainPods),
		onPods("C21 runtime class for untrusted Pods", sandboxed).samples(labelledPod("example.com/trust", "none")),
		onPods("C22 sets ndots", setsNdots),
		onPods("C23 requests half of the CPU limit", requestsFromLimits).samples(limitedPod()),
		podCase("C24 host aliases, without types", ofHandler(mapped(hostAliased))),
		onPods("C25 adds the scheduling gate of a quota", gated),
		onPods("C26 environment of the node in every container", nodeEnv),
	}
}

// mirrored adds the mirror to images without a registry. The mirror's own name has a dot, so a second
// call skips it.
var mirrored = changesContainers(func(c *corev1.Container) {
	host, _, found := strings.Cut(c.Image, "/")
	if found && (strings.ContainsAny(host, ".:") || host == "localhost") || c.Image == "" {
		return
	}
	if !found {
		c.Image = "library/" + c.Image
	}
	c.Image = mirror + c.Image
})

// restricted sets security fields that are nil, where the API server accepts the new value.
var restricted = changes(func(p *corev1.Pod) {
	if isWindows(p) {
		return
	}
	if p.Spec.SecurityContext == nil {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if p.Spec.SecurityContext.RunAsNonRoot == nil {
		p.Spec.SecurityContext.RunAsNonRoot = ptr.To(true)
	}
	if p.Spec.SecurityContext.SeccompProfile == nil {
		p.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	for _, c := range everyContainer(p) {
		if s := securityOf(c); s.AllowPrivilegeEscalation == nil && !escalates(s) {
			s.AllowPrivilegeEscalation = ptr.To(false)
		}
	}
})

// escalates reports whether the API server requires that privilege escalation stays allowed.
func escalates(s *corev1.SecurityContext) bool {
	return ptr.Deref(s.Privileged, false) || s.Capabilities != nil && slices.ContainsFunc(s.Capabilities.Add, func(c corev1.Capability) bool {
		return strings.TrimPrefix(string(c), "CAP_") == "SYS_ADMIN"
	})
}

// dropsAll drops all capabilities, but not on Windows, where the API server rejects this.
var dropsAll = unless(isWindows, changesContainers(func(c *corev1.Container) {
	s := securityOf(c)
	if s.Capabilities == nil {
		s.Capabilities = &corev1.Capabilities{}
	}
	if drop := &s.Capabilities.Drop; !slices.ContainsFunc(*drop, func(c corev1.Capability) bool { return strings.EqualFold(string(c), "ALL") }) {
		*drop = append(*drop, "ALL")
	}
}))

const accelerator = "example.com/gpu"

// acceleratorPod returns a Pod that requests accelerators.
func acceleratorPod(count string) *corev1.Pod {
	n := corev1.ResourceList{accelerator: resource.MustParse(count)}
	return samplePod(nil, corev1.PodSpec{Containers: []corev1.Container{{
		Name: "train", Image: "train:v1", Resources: corev1.ResourceRequirements{Requests: n, Limits: n.DeepCopy()},
	}}})
}

// ensureToleration adds a toleration unless the Pod has an equal one.
func ensureToleration(p *corev1.Pod, want corev1.Toleration) {
	if !slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, want) }) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, want)
	}
}

// acceleratorTolerated adds a toleration to Pods that have an accelerator.
var acceleratorTolerated = changes(func(p *corev1.Pod) {
	for _, c := range everyContainer(p) {
		if n, ok := c.Resources.Limits[accelerator]; ok && !n.IsZero() {
			ensureToleration(p, corev1.Toleration{Key: accelerator, Operator: corev1.TolerationOpExists})
		}
	}
})

// spotTolerated adds a toleration. Unlike most fields of a Pod, tolerations can be added in updates.
var spotTolerated = changes(func(p *corev1.Pod) {
	ensureToleration(p, corev1.Toleration{Key: "example.com/spot", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule})
})

// spreadOverZones adds a label and a spread constraint that selects by another label.
func spreadOverZones(r *review.Request, p *corev1.Pod) error {
	setKey(&p.Labels, "example.com/spread", "yes")
	return spread(sameKeys)(r, p)
}

// prefersPool adds a preferred node affinity term unless the Pod has an equal one.
var prefersPool = changes(func(p *corev1.Pod) {
	want := corev1.PreferredSchedulingTerm{Weight: 10, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "example.com/pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"general"}},
	}}}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	terms := &p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if !slices.ContainsFunc(*terms, func(t corev1.PreferredSchedulingTerm) bool { return equality.Semantic.DeepEqual(t, want) }) {
		*terms = append(*terms, want)
	}
})

// onPlainPods adds a match condition, so the API server calls the webhook only for Pods without a
// priority class.
func onPlainPods(w *admissionregistrationv1.MutatingWebhook) {
	w.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "no-class", Expression: "!has(object.spec.priorityClassName) || object.spec.priorityClassName == ''"},
	}
}

// priorityDefault sets the priority class only if the Pod has no class and no priority.
func priorityDefault(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	spec, _ := member[tree](doc, "spec")
	if textAt(spec, "priorityClassName") != "" || spec["priority"] != nil {
		return nil, nil
	}
	return []op{{Op: "add", Path: "/spec/priorityClassName", Value: "batch-low"}}, nil
}

// sandboxed sets the runtime class of Pods with a certain label, if it is nil.
var sandboxed = changes(func(p *corev1.Pod) {
	if p.Labels["example.com/trust"] == "none" && p.Spec.RuntimeClassName == nil {
		p.Spec.RuntimeClassName = ptr.To("sandboxed")
	}
})

// setsNdots adds a DNS option unless the Pod sets that option.
var setsNdots = changes(func(p *corev1.Pod) {
	if p.Spec.DNSConfig == nil {
		p.Spec.DNSConfig = &corev1.PodDNSConfig{}
	}
	if !slices.ContainsFunc(p.Spec.DNSConfig.Options, func(o corev1.PodDNSConfigOption) bool { return o.Name == "ndots" }) {
		p.Spec.DNSConfig.Options = append(p.Spec.DNSConfig.Options, corev1.PodDNSConfigOption{Name: "ndots", Value: ptr.To("2")})
	}
})

// requestsFromLimits sets each CPU request to half of the limit. The limit does not change, so neither
// does the result.
var requestsFromLimits = unless(func(p *corev1.Pod) bool { return p.Spec.Resources != nil }, changesContainers(func(c *corev1.Container) {
	limit, ok := c.Resources.Limits[corev1.ResourceCPU]
	if !ok || limit.Value() > 1000 || limit.MilliValue() < 2 {
		return
	}
	if c.Resources.Requests == nil {
		c.Resources.Requests = corev1.ResourceList{}
	}
	c.Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(limit.MilliValue()/2, resource.DecimalSI)
}))

// hostAliased adds a host name to an existing alias for its address, or adds the alias.
var hostAliased = changes(func(doc tree) {
	const ip, name = "192.0.2.10", "registry.internal"
	spec := at(doc, "spec")
	aliases, _ := spec["hostAliases"].([]any)
	for _, a := range objectsAt(doc, "spec", "hostAliases") {
		if a["ip"] != ip {
			continue
		}
		names, _ := a["hostnames"].([]any)
		if !slices.Contains(names, any(name)) {
			a["hostnames"] = append(names, name)
		}
		return
	}
	spec["hostAliases"] = append(aliases, tree{"ip": ip, "hostnames": []any{name}})
})

// gated adds a scheduling gate, but not to Pods that have a node, for which the API server rejects
// gates.
var gated = changes(func(p *corev1.Pod) {
	own := corev1.PodSchedulingGate{Name: "example.com/quota"}
	if p.Spec.NodeName == "" && !slices.Contains(p.Spec.SchedulingGates, own) {
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, own)
	}
})

// nodeEnv adds variables with the name and the address of the node to each container that lacks them.
var nodeEnv = changesContainers(func(c *corev1.Container) {
	for _, e := range []struct{ name, path string }{{"NODE_NAME", "spec.nodeName"}, {"NODE_IP", "status.hostIP"}} {
		if findEnv(c, e.name) == nil {
			c.Env = append(c.Env, corev1.EnvVar{Name: e.name, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: e.path},
			}})
		}
	}
})
