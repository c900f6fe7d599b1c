// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// C61 to C72: correct webhooks that adapt their results when others change the object later. Some broken webhooks look
// much the same.

func correctFollowers() []Case {
	return []Case{
		onPods("C61 sums the requests of the other containers", sumRequested),
		onPods("C62 lists the ports of the other containers for the sidecar", portsFollowed),
		onPods("C63 computes the heap size from the limit", heapFromLimit).samples(limitedPod()),
		onPods("C64 has a second name for its volume", secondVolumeName),
		labelsEveryKind(),
		onKind("C66 Deployment: spreads by its own selector", "apps/v1", "deployments", spreadBySelector),
		podCase("C67 tests before it replaces", ofHandler(byHand(testsFirst))),
		onPods("C68 can be switched off by an annotation later", switchedOffLater).
			samples(simplePod(map[string]string{"agent.example.com/inject": "true"})),
		onPods("C69 defaults tolerationSeconds, also in updates", tolerationSeconds).on(create, update),
		onPods("C70 defaults the selector of spread constraints", spreadSelector),
		onKind("C71 NetworkPolicy: adds a port where there is none", "networking.k8s.io/v1", "networkpolicies", portProtocols).
			samples(sampleNetworkPolicy()),
		onPods("C72 adds the toleration of a pool to Pods that prefer it", poolOfPreference).samples(preferringPod()),
	}
}

// sumRequested writes the sum of the other containers' memory requests into an annotation. The annotation changes only
// if those requests change.
func sumRequested(r *review.Request, p *corev1.Pod) error {
	sum := resource.Quantity{}
	for _, c := range appContainers(p) {
		if c.Name != sidecar().Name {
			sum.Add(c.Resources.Requests[corev1.ResourceMemory])
		}
	}
	annotate(p, "agent.example.com/memory", sum.String())
	return sidecarIfAbsent(r, p)
}

// portsFollowed writes the ports of the other containers into a variable of the sidecar. It does so in every call, so
// the variable follows later changes.
func portsFollowed(r *review.Request, p *corev1.Pod) error {
	if err := sidecarIfAbsent(r, p); err != nil {
		return err
	}
	var ports []string
	for _, c := range appContainers(p) {
		for _, port := range c.Ports {
			if text := strconv.Itoa(int(port.ContainerPort)); c.Name != sidecar().Name && !slices.Contains(ports, text) {
				ports = append(ports, text)
			}
		}
	}
	slices.Sort(ports)
	if c := container(p, sidecar().Name); c != nil {
		setEnvValue(c, "INBOUND_PORTS", strings.Join(ports, ","))
	}
	return nil
}

// heapFromLimit computes a variable from the limit in every call, so it follows the limit.
var heapFromLimit = changesAppContainers(func(c *corev1.Container) {
	if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
		setEnvValue(c, "GOMEMLIMIT", strconv.FormatInt(limit.Value()/10*9, 10))
	}
})

// secondVolumeName first looks for its volume under two names. If there is none, it adds the volume under the first
// name that is free.
func secondVolumeName(_ *review.Request, p *corev1.Pod) error {
	const at = "/run/settings"
	names := []string{"settings", "settings-of-agent"}
	for _, name := range names {
		if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == name && sameSource(v.VolumeSource, configVolume(name, "agent-settings").VolumeSource)
		}) {
			return ensureMounted(p, configVolume(name, "agent-settings"), at)
		}
	}
	for _, name := range names {
		if !hasVolume(p, name) {
			return ensureMounted(p, configVolume(name, "agent-settings"), at)
		}
	}
	return denial("the names of the settings are taken")
}

// labelsEveryKind returns a case of a webhook that labels objects of every kind.
func labelsEveryKind() Case {
	c := kindCase("C65 labels objects of every kind", "v1", "pods", mapped(func(_ *review.Request, doc tree) error {
		at(doc, "metadata", "labels")["example.com/seen"] = "yes"
		return nil
	}))
	rule := &c.Webhook.Rules[0]
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{"*"}, []string{"*"}, []string{"*"}
	return c.registered(onlyLabelled("example.com/watched", "yes")).samples(labelledPod("example.com/watched", "yes"))
}

// spreadBySelector adds a constraint and an affinity term, each only if the template lacks it.
var spreadBySelector = changes(func(d *appsv1.Deployment) {
	if d.Spec.Selector == nil {
		return
	}
	own := corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: "topology.example.com/zone", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: d.Spec.Selector.DeepCopy(),
	}
	constraints := &d.Spec.Template.Spec.TopologySpreadConstraints
	if !slices.ContainsFunc(*constraints, func(c corev1.TopologySpreadConstraint) bool { return sameKeys(c, own) }) {
		*constraints = append(*constraints, own)
	}
	if d.Spec.Template.Spec.Affinity == nil {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{}
	}
	if d.Spec.Template.Spec.Affinity.PodAntiAffinity == nil {
		d.Spec.Template.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	term := corev1.WeightedPodAffinityTerm{Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{
		TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/spread": "yes"}},
	}}
	terms := &d.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if !slices.ContainsFunc(*terms, func(t corev1.WeightedPodAffinityTerm) bool { return equality.Semantic.DeepEqual(t, term) }) {
		*terms = append(*terms, term)
	}
})

// testsFirst returns a patch that tests the name of a container before it replaces a field there. The test operation
// always succeeds, because the patch is made from the received object.
func testsFirst(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	var ops []op
	for i, c := range objectsAt(doc, "spec", "containers") {
		path := "/spec/containers/" + strconv.Itoa(i)
		if c["terminationMessagePolicy"] == "File" {
			ops = append(ops,
				op{Op: "test", Path: path + "/name", Value: c["name"]},
				op{Op: "replace", Path: path + "/terminationMessagePolicy", Value: "FallbackToLogsOnError"})
		}
	}
	return ops, nil
}

// switchedOffLater does nothing once the user has switched it off. It does not remove what it has added before.
func switchedOffLater(r *review.Request, p *corev1.Pod) error {
	if p.Annotations["agent.example.com/inject"] != "true" {
		return nil
	}
	return tokenMounted(r, p)
}

// tolerationSeconds sets missing seconds of tolerations, which the API server permits in updates.
var tolerationSeconds = changes(func(p *corev1.Pod) {
	for i := range p.Spec.Tolerations {
		if t := &p.Spec.Tolerations[i]; t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds == nil {
			t.TolerationSeconds = ptr.To[int64](300)
		}
	}
	setKey(&p.Labels, "example.com/tolerations", "limited")
})

// spreadSelector sets a missing labelSelector in topology spread constraints. The elements of that list have no names.
var spreadSelector = changes(func(p *corev1.Pod) {
	for i := range p.Spec.TopologySpreadConstraints {
		if c := &p.Spec.TopologySpreadConstraints[i]; c.LabelSelector == nil {
			c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/spread": "yes"}}
		}
	}
	setKey(&p.Labels, "example.com/spread", "yes")
})

// portProtocols adds a port to each rule without ports. Such rules have no names.
var portProtocols = changes(func(n *networkingv1.NetworkPolicy) {
	for i := range n.Spec.Egress {
		if len(n.Spec.Egress[i].Ports) == 0 {
			n.Spec.Egress[i].Ports = []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(443))}}
		}
	}
	setKey(&n.Labels, "example.com/checked", "yes")
})

func preferringPod() *corev1.Pod {
	p := simplePod(nil)
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "example.com/pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"gpu"}}},
		}}},
	}}
	return p
}

// poolOfPreference raises the weight of preferred node affinity terms for a pool, and adds a toleration for the pool.
// Such terms have no names.
var poolOfPreference = changes(func(p *corev1.Pod) {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return
	}
	terms := p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	for i := range terms {
		for _, e := range terms[i].Preference.MatchExpressions {
			if e.Key == "example.com/pool" {
				terms[i].Weight = max(terms[i].Weight, 50)
				ensureToleration(p, corev1.Toleration{Key: "example.com/pool", Operator: corev1.TolerationOpExists})
			}
		}
	}
})
