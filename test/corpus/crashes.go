// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// B71 to B85: webhooks that crash on valid objects, or do not find their own parts again.

func crashes() []Case {
	return []Case{
		onPods("B71 names its volume by a hash that includes it", hashedVolumes).breaks("L1"),
		podCase("B72 assumes that the last volume is its own", ofHandler(handler(assumesLastVolume))).breaks("L4b", "L5", "L10", "L4a"),
		onPods("B73 keeps one mount per volume", mountsByVolume).breaks("L5", "L10"),
		onPods("B74 assumes that ports of probes are numbers", numericPorts).samples(probedPod()).breaks("L2"),
		onPods("B75 panics on an invalid quantity", parsesQuantity).
			samples(simplePod(map[string]string{"sidecar.example.com/memory": "128Mi"})).breaks("L2", "L4a"),
		onPods("B76 disables service links, also in updates", noServiceLinks).on(create, update).breaks("L6"),
		onPods("B77 adds another sidecar when the image changed", sidecarByContent).breaks("L4a"),
		widgetCase("B78 rewrites the steps with its own types", handler(stepsRewritten)).breaks("L9"),
		onKind("B79 Service: assumes that there is a port", "v1", "services", firstPort).breaks("L2"),
		onKind("B80 Job: assumes that completions is set", "batch/v1", "jobs", jobSize).breaks("L2"),
		onKind("B81 Ingress: assumes that each rule has HTTP paths", "networking.k8s.io/v1", "ingresses", pathsCounted).samples(sampleIngress()).breaks("L2"),
		onPods("B82 assumes that each probe is an HTTP probe", httpProbes).samples(probedPod()).breaks("L2"),
		onPods("B83 assumes that each valueFrom refers to a Secret", secretReferences).breaks("L2"),
		onPods("B84 recognizes its volume by content only", volumeByContent).breaks("L4a"),
		onKind("B85 Secret: writes stringData", "v1", "secrets", tokenAsText).breaks("L6"),
	}
}

// hashedVolumes names its volume by a hash of all volumes. In a second call the hash differs, so it adds a second
// volume.
func hashedVolumes(_ *review.Request, p *corev1.Pod) error {
	return ensureMounted(p, emptyDir("scratch-"+hash(p.Spec.Volumes)[:8]), "/scratch-"+hash(p.Spec.Volumes)[:8])
}

// assumesLastVolume appends its volume. In later calls it overwrites the last volume, which may then be another one.
func assumesLastVolume(r *review.Request) (patch.Patch, error) {
	var p corev1.Pod
	if err := json.Unmarshal(r.Object, &p); err != nil {
		return nil, err
	}
	own := secretVolume("tok", "agent-token")
	switch last := len(p.Spec.Volumes) - 1; {
	case last < 0:
		return patch.Patch{add("/spec/volumes", []corev1.Volume{own})}, nil
	case !hasVolume(&p, own.Name):
		return patch.Patch{add("/spec/volumes/-", own)}, nil
	case p.Spec.Volumes[last].Secret == nil || p.Spec.Volumes[last].Secret.SecretName != own.Secret.SecretName:
		return patch.Patch{add(patch.Pointer("/spec/volumes").Index(last), own)}, nil
	}
	return nil, nil
}

// mountsByVolume keeps only one mount of each volume, although a container may mount a volume at several paths.
var mountsByVolume = changes(func(p *corev1.Pod) {
	for _, c := range appContainers(p) {
		c.VolumeMounts = byName(c.VolumeMounts, func(m corev1.VolumeMount) string { return m.Name })
	}
	annotate(p, "example.com/mounts", "checked")
})

// numericPorts parses the port of each probe. It fails on a port that is given by name.
func numericPorts(_ *review.Request, p *corev1.Pod) error {
	for _, c := range appContainers(p) {
		if c.LivenessProbe == nil || c.LivenessProbe.HTTPGet == nil {
			continue
		}
		port, err := strconv.Atoi(c.LivenessProbe.HTTPGet.Port.String())
		if err != nil {
			return err
		}
		ensureEnv(c, "HEALTH_PORT", strconv.Itoa(port))
	}
	return nil
}

// parsesQuantity parses a quantity from an annotation. It panics if the quantity is invalid.
var parsesQuantity = changes(func(p *corev1.Pod) {
	text, ok := p.Annotations["sidecar.example.com/memory"]
	if !ok || p.Spec.Resources != nil || nameTaken(p, "cache") {
		return
	}
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
		Name: "cache", Image: "registry.example.com/cache:7",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)}},
	})
})

// noServiceLinks sets enableServiceLinks, which is immutable in updates.
var noServiceLinks = changes(func(p *corev1.Pod) {
	p.Spec.EnableServiceLinks = ptr.To(false)
})

// sidecarByContent recognizes its container by name and image. If the image was changed, it adds
// another container.
var sidecarByContent = changes(func(p *corev1.Pod) {
	const image = "registry.example.com/metrics:v3"
	if slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return strings.HasPrefix(c.Name, "metrics") && c.Image == image
	}) {
		return
	}
	name := "metrics"
	for i := 2; nameTaken(p, name); i++ {
		name = "metrics-" + strconv.Itoa(i)
	}
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: image})
})

// stepsRewritten replaces the steps with the encoding of its Go types, and so loses unknown fields.
func stepsRewritten(r *review.Request) (patch.Patch, error) {
	var w widget
	if err := json.Unmarshal(r.Object, &w); err != nil {
		return nil, err
	}
	changed := false
	for i := range w.Spec.Steps {
		if s := &w.Spec.Steps[i]; !strings.HasPrefix(s.Image, mirror) {
			s.Image, changed = mirror+s.Image, true
		}
	}
	if !changed {
		return nil, nil
	}
	return patch.Patch{{Op: patch.Replace, Path: "/spec/steps", Value: add("", w.Spec.Steps).Value}}, nil
}

// firstPort reads the first port. It panics on a Service without ports.
var firstPort = changes(func(s *corev1.Service) {
	setKey(&s.Annotations, "example.com/port", strconv.Itoa(int(s.Spec.Ports[0].Port)))
})

// jobSize reads completions. It panics if the field is not set.
var jobSize = changes(func(j *batchv1.Job) {
	setKey(&j.Annotations, "queue.example.com/size", strconv.Itoa(int(*j.Spec.Completions)))
})

// pathsCounted counts the paths of all rules. It panics on a rule without HTTP paths.
var pathsCounted = changes(func(i *networkingv1.Ingress) {
	paths := 0
	for _, rule := range i.Spec.Rules {
		paths += len(rule.HTTP.Paths)
	}
	setKey(&i.Annotations, "example.com/paths", strconv.Itoa(paths))
})

// httpProbes reads the HTTP part of each liveness probe. It panics on a probe of another kind.
var httpProbes = changesAppContainers(func(c *corev1.Container) {
	if c.LivenessProbe != nil && c.LivenessProbe.HTTPGet.Path == "" {
		c.LivenessProbe.HTTPGet.Path = "/healthz"
	}
	ensureEnv(c, "HEALTH", "on")
})

// secretReferences lists the Secrets of all variables. It panics on a reference to anything else.
var secretReferences = changes(func(p *corev1.Pod) {
	var names []string
	for _, c := range appContainers(p) {
		for _, e := range c.Env {
			if e.ValueFrom != nil && !slices.Contains(names, e.ValueFrom.SecretKeyRef.Name) {
				names = append(names, e.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
	slices.Sort(names)
	annotate(p, "example.com/secrets", strings.Join(names, ","))
})

// volumeByContent recognizes its volume by its content. If the content was changed, it adds another
// volume.
var volumeByContent = changes(func(p *corev1.Pod) {
	want := configVolume("settings", "agent-settings")
	if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return sameSource(v.VolumeSource, want.VolumeSource)
	}) {
		return
	}
	for i := 2; hasVolume(p, want.Name); i++ {
		want.Name = "settings-" + strconv.Itoa(i)
	}
	addVolume(p, want)
})

// tokenAsText writes a key of stringData, which the API server moves to data. A second call does not look there, and
// writes the key again.
var tokenAsText = changes(func(s *corev1.Secret) {
	if s.Type == corev1.SecretTypeOpaque && s.StringData["agent-token"] == "" {
		if s.StringData == nil {
			s.StringData = map[string]string{}
		}
		s.StringData["agent-token"] = "generated-by-the-agent"
	}
})
