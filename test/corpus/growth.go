// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// P01 and P02: webhooks that append without a check, and so append twice.

func growthPatterns() []Case {
	return []Case{
		onPods("P01 blind append of a sidecar", blindSidecar).breaks("L1"),
		onDeployments("P01 blind append of a sidecar", blindSidecar).breaks("L1"),
		onPods("P01 blind append of an init container", blindInit).breaks("L1"),
		onPods("P02 blind append of volume and mount", blindVolume).breaks("L1"),
		onDeployments("P02 blind append of volume and mount", blindVolume).breaks("L1"),
		onPods("P02 blind append of env", blindEnv).breaks("L1"),
		onPods("P02 blind append of envFrom", blindEnvFrom).breaks("L1"),
		onPods("P02 volume guarded, mount not", guardedVolume).breaks("L1"),
		onPods("P02 mount guarded, volume not", guardedMount).breaks("L1"),
		onPods("P02 volume and mount guarded, env not", guardedBoth).breaks("L1"),
	}
}

func growthLookalikes() []Case {
	return []Case{
		onPods("P01 append if absent", sidecarIfAbsent),
		onDeployments("P01 append if absent", sidecarIfAbsent),
		onPods("P01 update in place", sidecarInPlace),
		onPods("P01 init container if absent", initIfAbsent),
		onPods("P02 ensure volume, ensure mount", certsMounted),
		onDeployments("P02 ensure volume, ensure mount", certsMounted),
		onPods("P02 ensure env", ensuredEnv),
		onPods("P02 ensure envFrom", ensuredEnvFrom),
	}
}

// blindSidecar appends its container without a check. A second call adds a second container.
var blindSidecar = changes(func(p *corev1.Pod) {
	p.Spec.Containers = append(p.Spec.Containers, sidecar())
})

// blindInit appends its init container without a check. A second call adds a second one.
var blindInit = changes(func(p *corev1.Pod) {
	p.Spec.InitContainers = append(p.Spec.InitContainers, sidecar())
})

// sidecarIfAbsent adds its container unless the name is taken, so a second call changes nothing.
var sidecarIfAbsent = unless(hasSidecar, blindSidecar)

// initIfAbsent adds its init container unless the name is taken.
var initIfAbsent = unless(hasSidecar, blindInit)

// hasSidecar reports whether a container of any kind has the name of the sidecar.
func hasSidecar(p *corev1.Pod) bool { return nameTaken(p, sidecar().Name) }

// sidecarInPlace adds its container, or updates the image of an existing one.
func sidecarInPlace(r *review.Request, p *corev1.Pod) error {
	if c := container(p, sidecar().Name); c != nil {
		c.Image = sidecar().Image
		return nil
	}
	return sidecarIfAbsent(r, p)
}

func certs() corev1.Volume { return secretVolume("certs", "agent-certs") }

func certsMount() corev1.VolumeMount { return corev1.VolumeMount{Name: "certs", MountPath: "/certs"} }

// blindVolume appends its volume and mounts without a check. A second call adds them again.
var blindVolume = inOrder(changes(func(p *corev1.Pod) { addVolume(p, certs()) }), mountsBlindly)

// blindEnv appends its variable without a check. A second call adds it again.
var blindEnv = changesAppContainers(func(c *corev1.Container) {
	c.Env = append(c.Env, corev1.EnvVar{Name: "CERTS", Value: "/certs"})
})

func agentEnvFrom() corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "agent-env"},
	}}
}

// blindEnvFrom appends its envFrom source without a check. A second call adds it again.
var blindEnvFrom = changesAppContainers(func(c *corev1.Container) {
	c.EnvFrom = append(c.EnvFrom, agentEnvFrom())
})

// guardedVolume checks for its volume but not for its mounts. A second call adds the mounts again.
var guardedVolume = inOrder(ensuresVolume(certs()), mountsBlindly)

var mountsBlindly = changesAppContainers(func(c *corev1.Container) { addMount(c, certsMount()) })

// guardedMount checks for its mounts but not for its volume. A second call adds the volume again.
func guardedMount(_ *review.Request, p *corev1.Pod) error {
	addVolume(p, certs())
	for _, c := range appContainers(p) {
		if err := ensureMount(c, certsMount()); err != nil {
			return err
		}
	}
	return nil
}

// guardedBoth checks for its volume and mounts but not for its variable. A second call adds the
// variable again.
var guardedBoth = inOrder(certsMounted, blindEnv)

// certsMounted adds its volume and, in each container, its mount. It adds each only if it is missing.
func certsMounted(_ *review.Request, p *corev1.Pod) error {
	return ensureMounted(p, certs(), "/certs")
}

// ensuredEnv adds its variable to each container that lacks it.
var ensuredEnv = changesContainers(func(c *corev1.Container) {
	ensureEnv(c, "CERTS", "/certs")
})

// ensuredEnvFrom adds its envFrom source to each container that lacks it.
var ensuredEnvFrom = changesContainers(func(c *corev1.Container) {
	if !slices.ContainsFunc(c.EnvFrom, isAgentEnv) {
		c.EnvFrom = append(c.EnvFrom, agentEnvFrom())
	}
})

// isAgentEnv reports whether s is the agent's envFrom source. With a prefix, the same ConfigMap defines other
// variables.
func isAgentEnv(s corev1.EnvFromSource) bool {
	return s.Prefix == "" && s.ConfigMapRef != nil && s.ConfigMapRef.Name == agentEnvFrom().ConfigMapRef.Name
}
