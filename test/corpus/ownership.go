// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// P04 and P12: webhooks that mistake their own output for the user's, or the reverse.

func ownershipPatterns() []Case {
	return []Case{
		onPods("P04 refuses its own output", refusesOwnEnv).breaks("L2"),
		onPods("P04 refuses its own annotation", refusesOwnAnnotation).breaks("L2"),
		onPods("P12 override honoured once", overrideOnce).breaks("L1", "L5").samples(podWithOwnAgent()),
	}
}

func ownershipLookalikes() []Case {
	return []Case{
		onPods("P04 refuses another value only", refusesOtherEnv),
		onPods("P12 sets only nil fields", fillsNil).samples(podWithOwnAgent()),
		onPods("P12 sets only nil fields, and so does a rival", fillsNil).samples(podWithOwnAgent()).
			against(rivalFillsNil).advice(),
	}
}

// refusesOwnEnv denies Pods that have its variable, and then adds it. A second call denies its own
// output.
func refusesOwnEnv(_ *review.Request, p *corev1.Pod) error {
	for _, c := range appContainers(p) {
		if findEnv(c, "AGENT_ID") != nil {
			return denial("AGENT_ID is reserved")
		}
		ensureEnv(c, "AGENT_ID", "7")
	}
	return nil
}

// refusesOwnAnnotation denies Pods that have its annotation, and then adds it. A second call denies
// its own output.
func refusesOwnAnnotation(_ *review.Request, p *corev1.Pod) error {
	if _, ok := p.Annotations["agent/id"]; ok {
		return denial("agent/id is reserved")
	}
	annotate(p, "agent/id", "7")
	return nil
}

// refusesOtherEnv denies its variable only with another value, so it accepts its own output.
func refusesOtherEnv(_ *review.Request, p *corev1.Pod) error {
	for _, c := range everyContainer(p) {
		for _, e := range c.Env {
			if e.Name == "AGENT_ID" && (e.Value != "7" || e.ValueFrom != nil) {
				return denial("AGENT_ID is reserved")
			}
		}
		ensureEnv(c, "AGENT_ID", "7")
	}
	return nil
}

const (
	agentUser = 1337
	injected  = "agent/status"
)

func userOf(uid int64) *corev1.SecurityContext {
	return &corev1.SecurityContext{RunAsUser: ptr.To(uid)}
}

// overrideOnce keeps the user's security context in its first call and replaces it in the second.
var overrideOnce = changes(func(p *corev1.Pod) {
	template := sidecar()
	template.SecurityContext = userOf(agentUser)
	if c := container(p, template.Name); c == nil {
		p.Spec.Containers = append(p.Spec.Containers, template)
	} else {
		if p.Annotations[injected] == "" && c.SecurityContext != nil {
			template.SecurityContext = c.SecurityContext
		}
		c.SecurityContext = template.SecurityContext
	}
	annotate(p, injected, "injected")
})

// fillsNil sets the user id only if it is nil, so the user's value stays in every call.
var fillsNil = inOrder(sidecarIfAbsent, changes(func(p *corev1.Pod) { defaultUser(p, agentUser) }), annotatedStatus)

// rivalFillsNil sets another user id for the same container if its user id is nil.
var rivalFillsNil = changes(func(p *corev1.Pod) {
	defaultUser(p, 2000)
})

// defaultUser sets the user id of the sidecar if it is nil.
func defaultUser(p *corev1.Pod, uid int64) {
	c := container(p, sidecar().Name)
	if c == nil || isWindows(p) {
		return
	}
	if s := securityOf(c); s.RunAsUser == nil {
		s.RunAsUser = ptr.To(uid)
	}
}

// podWithOwnAgent returns a Pod where the user has configured the sidecar.
func podWithOwnAgent() *corev1.Pod {
	agent := sidecar()
	agent.SecurityContext = userOf(1000)
	return samplePod(nil, corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}, agent}})
}
