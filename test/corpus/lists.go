// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// B01 to B14: webhooks that add to a list in each call, drop values, or look for their parts in the wrong place.

func listMistakes() []Case {
	return []Case{
		onPods("B01 looks for its init container among the containers", checksOtherContainers).breaks("L1"),
		onPods("B02 recognizes its sidecar by its image", sidecarByImage).breaks("L4a", "L5"),
		onPods("B03 processes containers up to its own", stopsAtSidecar).breaks("L4b"),
		onPods("B04 assumes that the last container is its own", skipsLastContainer).breaks("L4b", "L1"),
		onPods("B05 replaces an affinity without node affinity", affinityReplaced).breaks("L5", "L10"),
		onPods("B06 replaces resources without limits", resourcesReplaced).breaks("L5", "L10"),
		onPods("B07 recognizes its spread constraint by its whole content", spread(func(a, b corev1.TopologySpreadConstraint) bool {
			return equality.Semantic.DeepEqual(a, b)
		})).breaks("L5", "L4a"),
		onPods("B08 adds a requirement to each node selector term again", requirementInTerms).breaks("L1"),
		podCase("B09 uses indexes from before its own insertion", ofHandler(byHand(usesOldIndexes))).breaks("L1", "L10"),
		podCase("B10 creates the annotations for each key", ofHandler(byHand(mapForEachKey))).breaks("L1", "L10"),
		podCase("B11 always sends its label", ofHandler(byHand(alwaysSends))).breaks("L1", "L10").advice(),
		podCase("B12 removes an annotation that may be missing", ofHandler(byHand(removesMissing))).breaks("L10", "L2").
			samples(simplePod(map[string]string{legacyKey: "on", "team": "shop"})).
			except("/metadata/annotations/"+pointerToken(legacyKey), "", "the old switch is gone"),
		podCase("B13 rewrites the variables with its own types", ofHandler(handler(envRewritten))).breaks("L9"),
		onPods("B14 appends its network unless the list begins with it", networkByPrefix).breaks("L1").
			samples(simplePod(map[string]string{"k8s.v1.cni.cncf.io/networks": "macvlan@eth1"})),
	}
}

// checksOtherContainers adds an init container, but looks for it among the containers. A second call
// adds it again.
var checksOtherContainers = changes(func(p *corev1.Pod) {
	if slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == "mesh-proxy" }) {
		return
	}
	p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
		Name: "mesh-proxy", Image: "registry.example.com/mesh/proxy:1.24", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
	})
})

// sidecarByImage recognizes its container by its image. After a change of the image it adds a second
// container of the same name.
var sidecarByImage = changes(func(p *corev1.Pod) {
	const image = "registry.example.com/metrics:v3"
	if !slices.ContainsFunc(everyContainer(p), func(c *corev1.Container) bool { return c.Image == image }) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "metrics", Image: image})
	}
})

// stopsAtSidecar configures only the containers before its own. A container appended after the first call gets no
// variable.
var stopsAtSidecar = inOrder(sidecarIfAbsent, changes(func(p *corev1.Pod) {
	for _, c := range appContainers(p) {
		if c.Name == sidecar().Name {
			break
		}
		ensureEnv(c, "AGENT_ADDRESS", "localhost:8126")
	}
}))

// skipsLastContainer configures all containers except the last, which it assumes to be its own. A
// container appended later is last.
var skipsLastContainer = inOrder(sidecarIfAbsent, changes(func(p *corev1.Pod) {
	for i := range len(p.Spec.Containers) - 1 {
		ensureEnv(&p.Spec.Containers[i], "AGENT_ADDRESS", "localhost:8126")
	}
}))

// affinityReplaced replaces an affinity that lacks node affinity. It removes the Pod affinity of the
// user.
var affinityReplaced = changes(func(p *corev1.Pod) {
	if p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil {
		return
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "example.com/pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"general"}}},
		}}},
	}}
})

// resourcesReplaced replaces resources that have no limits. It removes the requests of the user.
var resourcesReplaced = changes(func(p *corev1.Pod) {
	for _, c := range appContainers(p) {
		if len(c.Resources.Limits) == 0 && p.Spec.Resources == nil {
			c.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: overhead.DeepCopy()}}
		}
	}
})

// requirementInTerms appends a requirement to each node selector term without a check. A second call
// appends it again.
var requirementInTerms = changes(func(p *corev1.Pod) {
	own := corev1.NodeSelectorRequirement{Key: "example.com/tenant", Operator: corev1.NodeSelectorOpIn, Values: []string{"shop"}}
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		setKey(&p.Spec.NodeSelector, own.Key, own.Values[0])
		return
	}
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, own)
	}
})

// usesOldIndexes inserts its container at the front. It then patches the other containers at their old indexes, each of
// which is now one too low.
func usesOldIndexes(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	var ops []op
	if !named(doc, "agent") {
		ops = append(ops, op{Op: "add", Path: "/spec/containers/0", Value: tree{"name": "agent", "image": "registry.example.com/agent:v1", "env": []any{}}})
	}
	for i, c := range objectsAt(doc, "spec", "containers") {
		own := tree{"name": "AGENT", "value": "on"}
		env := objectsAt(c, "env")
		if c["name"] == "agent" || slices.ContainsFunc(env, func(e tree) bool { return e["name"] == own["name"] }) {
			continue
		}
		path := string(patch.Pointer("/spec/containers").Index(i).Append("env"))
		if len(env) == 0 {
			ops = append(ops, op{Op: "add", Path: path, Value: []any{own}})
		} else {
			ops = append(ops, op{Op: "add", Path: path + "/-", Value: own})
		}
	}
	return ops, nil
}

// mapForEachKey adds an empty annotations map before each of its two keys. The second map removes the
// first key.
func mapForEachKey(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	annotations, _ := member[tree](doc, "metadata", "annotations")
	var ops []op
	for _, name := range []string{"agent-version", "agent-config"} {
		if annotations[name] == "v1" {
			continue
		}
		if annotations == nil {
			ops = append(ops, op{Op: "add", Path: "/metadata/annotations", Value: tree{}})
		}
		ops = append(ops, op{Op: "add", Path: "/metadata/annotations/" + name, Value: "v1"})
	}
	return ops, nil
}

// alwaysSends sends its label in every call, even when the object already has it.
func alwaysSends(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	if _, ok := member[tree](doc, "metadata", "labels"); !ok {
		return []op{{Op: "add", Path: "/metadata/labels", Value: tree{"example.com/mutated": "true"}}}, nil
	}
	return []op{{Op: "add", Path: "/metadata/labels/example.com~1mutated", Value: "true"}}, nil
}

const legacyKey = "legacy.example.com/inject"

// removesMissing removes an annotation that may not exist. The API server rejects such a patch.
func removesMissing(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	if annotations, _ := member[tree](doc, "metadata", "annotations"); len(annotations) > 0 {
		return []op{{Op: "remove", Path: "/metadata/annotations/" + pointerToken(legacyKey)}}, nil
	}
	return nil, nil
}

// envRewritten replaces the list of variables with the encoding of its Go type, and so loses unknown
// fields.
func envRewritten(r *review.Request) (patch.Patch, error) {
	var p corev1.Pod
	if err := json.Unmarshal(r.Object, &p); err != nil {
		return nil, err
	}
	var ops patch.Patch
	for i, c := range p.Spec.Containers {
		if findEnv(&c, "AGENT") == nil {
			ops = append(ops, add(patch.Pointer("/spec/containers").Index(i).Append("env"), append(c.Env, agentEnv())))
		}
	}
	return ops, nil
}

// networkByPrefix appends its network to a list unless the list begins with it. A second call finds it
// at the end and appends it again.
var networkByPrefix = changes(func(p *corev1.Pod) {
	const key, network = "k8s.v1.cni.cncf.io/networks", "mesh-cni"
	value := p.Annotations[key]
	switch {
	case value == "":
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, network)
	case !strings.HasPrefix(value, network):
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value+","+network)
	}
})
