// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// P24: webhooks that merge different list elements because their keys are equal.

func duplicateKeyPatterns() []Case {
	return []Case{
		onPods("P24 keeps one toleration per key", tolerationsByKey).breaks("L10", "L5"),
		onPods("P24 keeps one port per number", portsByNumber).breaks("L10", "L5"),
		onPods("P24 keeps one variable per name", envByName).breaks("L10", "L5"),
	}
}

func duplicateKeyLookalikes() []Case {
	return []Case{
		onPods("P24 adds a toleration when no equal one exists", tolerationOnce),
		onPods("P24 adds a port when no equal one exists", portOnce),
		onPods("P24 adds a variable when no equal one exists", envOnce),
		onPods("N8 leaves legal duplicates", leavesDuplicates).samples(podWithDuplicates()),
	}
}

// byName merges the elements with equal names. It keeps the position of the first and the value of the
// last.
func byName[T any, K comparable](list []T, name func(T) K) []T {
	places := map[K]int{}
	var out []T
	for _, e := range list {
		if i, ok := places[name(e)]; ok {
			out[i] = e
			continue
		}
		places[name(e)] = len(out)
		out = append(out, e)
	}
	return out
}

func agentToleration() corev1.Toleration {
	return corev1.Toleration{Key: "agent", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}

// tolerationsByKey keeps only one toleration for each key, although a Pod may have several with different effects.
var tolerationsByKey = changes(func(p *corev1.Pod) {
	p.Spec.Tolerations = byName(append(p.Spec.Tolerations, agentToleration()), func(t corev1.Toleration) string { return t.Key })
})

// tolerationOnce adds its toleration unless the Pod has an equal one.
var tolerationOnce = changes(func(p *corev1.Pod) {
	ensureToleration(p, agentToleration())
})

func agentPort() corev1.ContainerPort {
	return corev1.ContainerPort{ContainerPort: 9090, Protocol: corev1.ProtocolTCP}
}

// portsByNumber keeps only one port for each number, although a container may use a number for both TCP and UDP. It
// skips Pods in the host network, where the ports of two containers can conflict.
var portsByNumber = changes(func(p *corev1.Pod) {
	if p.Spec.HostNetwork {
		return
	}
	for _, c := range appContainers(p) {
		c.Ports = byName(c.Ports, func(p corev1.ContainerPort) int32 { return p.ContainerPort })
		ensurePort(c)
	}
})

// portOnce adds its port unless the container has one with the same number and protocol.
var portOnce = unless(func(p *corev1.Pod) bool { return p.Spec.HostNetwork }, changesAppContainers(ensurePort))

// ensurePort adds the agent's port unless the container has it. It compares the number and the protocol, which the API
// server uses as the key of a port.
func ensurePort(c *corev1.Container) {
	same := func(port corev1.ContainerPort) bool {
		return port.ContainerPort == agentPort().ContainerPort && cmp.Or(port.Protocol, corev1.ProtocolTCP) == agentPort().Protocol
	}
	if !slices.ContainsFunc(c.Ports, same) {
		c.Ports = append(c.Ports, agentPort())
	}
}

// envByName keeps only one variable for each name, although a container may define a variable twice.
var envByName = changesAppContainers(func(c *corev1.Container) {
	c.Env = byName(append(c.Env, agentEnv()), func(e corev1.EnvVar) string { return e.Name })
})

func agentEnv() corev1.EnvVar { return corev1.EnvVar{Name: "AGENT", Value: "on"} }

// envOnce adds its variable unless the container has an equal one.
var envOnce = changesContainers(func(c *corev1.Container) {
	if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e == agentEnv() }) {
		c.Env = append(c.Env, agentEnv())
	}
})

// leavesDuplicates adds its parts and keeps the user's elements with equal keys.
var leavesDuplicates = inOrder(tolerationOnce, portOnce, envOnce)

// podWithDuplicates returns a valid Pod whose lists have elements with equal keys.
func podWithDuplicates() *corev1.Pod {
	return samplePod(nil, corev1.PodSpec{
		Tolerations: []corev1.Toleration{
			{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		},
		Containers: []corev1.Container{{
			Name: "app", Image: "app:v1",
			Ports: []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolTCP}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
			Env:   []corev1.EnvVar{{Name: "LEVEL", Value: "info"}, {Name: "LEVEL", Value: "debug"}},
		}},
	})
}
