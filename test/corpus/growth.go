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
func blindSidecar(_ *review.Request, p *corev1.Pod) error {
	p.Spec.Containers = append(p.Spec.Containers, sidecar())
	return nil
}

// blindInit appends its init container without a check. A second call adds a second one.
func blindInit(_ *review.Request, p *corev1.Pod) error {
	p.Spec.InitContainers = append(p.Spec.InitContainers, sidecar())
	return nil
}

// sidecarIfAbsent adds its container unless the name is taken, so a second call changes nothing.
func sidecarIfAbsent(r *review.Request, p *corev1.Pod) error {
	if nameTaken(p, sidecar().Name) {
		return nil
	}
	return blindSidecar(r, p)
}

// initIfAbsent adds its init container unless the name is taken.
func initIfAbsent(r *review.Request, p *corev1.Pod) error {
	if nameTaken(p, sidecar().Name) {
		return nil
	}
	return blindInit(r, p)
}

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
func blindVolume(_ *review.Request, p *corev1.Pod) error {
	addVolume(p, certs())
	for i := range p.Spec.Containers {
		addMount(&p.Spec.Containers[i], certsMount())
	}
	return nil
}

// blindEnv appends its variable without a check. A second call adds it again.
func blindEnv(_ *review.Request, p *corev1.Pod) error {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.Env = append(c.Env, corev1.EnvVar{Name: "CERTS", Value: "/certs"})
	}
	return nil
}

func agentEnvFrom() corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "agent-env"},
	}}
}

// blindEnvFrom appends its source without a check. A second call adds it again.
func blindEnvFrom(_ *review.Request, p *corev1.Pod) error {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.EnvFrom = append(c.EnvFrom, agentEnvFrom())
	}
	return nil
}

// guardedVolume checks for its volume but not for its mounts. A second call adds the mounts again.
func guardedVolume(_ *review.Request, p *corev1.Pod) error {
	if err := ensureVolume(p, certs()); err != nil {
		return err
	}
	for i := range p.Spec.Containers {
		addMount(&p.Spec.Containers[i], certsMount())
	}
	return nil
}

// guardedMount checks for its mounts but not for its volume. A second call adds the volume again.
func guardedMount(_ *review.Request, p *corev1.Pod) error {
	addVolume(p, certs())
	for i := range p.Spec.Containers {
		if err := ensureMount(&p.Spec.Containers[i], certsMount()); err != nil {
			return err
		}
	}
	return nil
}

// guardedBoth checks for its volume and mounts but not for its variable. A second call adds the
// variable again.
func guardedBoth(r *review.Request, p *corev1.Pod) error {
	if err := certsMounted(r, p); err != nil {
		return err
	}
	return blindEnv(r, p)
}

// certsMounted checks for its volume and, in each container, for its mount.
func certsMounted(_ *review.Request, p *corev1.Pod) error {
	return ensureMounted(p, certs(), "/certs")
}

// ensuredEnv adds its variable to each container that lacks it.
func ensuredEnv(_ *review.Request, p *corev1.Pod) error {
	for _, c := range everyContainer(p) {
		ensureEnv(c, "CERTS", "/certs")
	}
	return nil
}

// ensuredEnvFrom adds its source to each container that lacks it.
func ensuredEnvFrom(_ *review.Request, p *corev1.Pod) error {
	for _, c := range everyContainer(p) {
		if !slices.ContainsFunc(c.EnvFrom, isAgentEnv) {
			c.EnvFrom = append(c.EnvFrom, agentEnvFrom())
		}
	}
	return nil
}

// isAgentEnv reports whether s is the agent's source. The same source with a prefix defines other
// variables.
func isAgentEnv(s corev1.EnvFromSource) bool {
	return s.Prefix == "" && s.ConfigMapRef != nil && s.ConfigMapRef.Name == agentEnvFrom().ConfigMapRef.Name
}
