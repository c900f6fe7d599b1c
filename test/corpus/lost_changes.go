// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// V31 to V37: broken webhooks that resemble correct ones. A lenient harness misses them.

func lostChangePatterns() []Case {
	return []Case{
		onPods("V31 signs the images and denies other images later", signsImages).breaks("L4a"),
		onDeployments("V32 replaces the annotations of the template", replacesAnnotations).breaks("L10", "L5"),
		onPods("V33 keeps only its own name server", ownNameserver).breaks("L10", "L5"),
		onPods("V34 keeps only its own finalizer", onlyOwnFinalizer).breaks("L10", "L5"),
		onPods("V35 keeps only its own toleration", ownTolerations).breaks("L10", "L5"),
		onPods("V36 mounts once and then trusts an annotation", mountsOnce).breaks("L4b"),
		onPods("V37 configures the sidecar at the first call only", configuresSidecarOnce).breaks("L4b", "L11"),
	}
}

// signsImages stores a hash of some images and denies Pods whose hash differs. So it denies Pods whose images another
// webhook has changed for a good reason.
func signsImages(_ *review.Request, p *corev1.Pod) error {
	var images []string
	for _, c := range everyContainer(p) {
		if c.Name == "app" || c.Name == "app-1" || c.Name == "app-10" {
			images = append(images, c.Image)
		}
	}
	signature := hash(images)
	if known, ok := p.Annotations["agent/signature"]; ok && known != signature && len(known) == len(signature) {
		return denial("the images are not those that were signed")
	}
	annotate(p, "agent/signature", signature)
	return nil
}

// replacesAnnotations replaces all annotations with its own. It removes the user's annotations.
var replacesAnnotations = changes(func(p *corev1.Pod) {
	if p.Annotations["agent/ok"] != "yes" {
		p.Annotations = map[string]string{"agent/ok": "yes"}
	}
})

// ownNameserver replaces all name servers with its own. It removes the user's name servers.
var ownNameserver = changes(func(p *corev1.Pod) {
	if p.Spec.DNSConfig == nil {
		p.Spec.DNSConfig = &corev1.PodDNSConfig{}
	}
	p.Spec.DNSConfig.Nameservers = []string{"192.0.2.10"}
})

// onlyOwnFinalizer replaces all finalizers with its own. It removes the user's finalizers.
var onlyOwnFinalizer = changes(func(p *corev1.Pod) {
	if !slices.Contains(p.Finalizers, "bugs.example.com/agent") {
		p.Finalizers = []string{"bugs.example.com/agent"}
	}
})

// ownTolerations replaces all tolerations with its own. It removes the user's tolerations.
var ownTolerations = changes(func(p *corev1.Pod) {
	if !slices.Contains(p.Spec.Tolerations, agentToleration()) {
		p.Spec.Tolerations = []corev1.Toleration{agentToleration()}
	}
})

// mountsOnce skips Pods that have its annotation. A container added after the first call gets no
// mount.
func mountsOnce(_ *review.Request, p *corev1.Pod) error {
	if err := ensureVolume(p, token()); err != nil {
		return err
	}
	if p.Annotations["agent/mounted-in"] != "" {
		return nil
	}
	annotate(p, "agent/mounted-in", hash(foreign(p)))
	return tokenMounted(nil, p)
}

// configuresSidecarOnce lists the containers in a variable when it adds the sidecar. A container added
// later is missing there.
var configuresSidecarOnce = changes(func(p *corev1.Pod) {
	if nameTaken(p, sidecar().Name) {
		return
	}
	c := sidecar()
	ensureEnv(&c, "CONTAINERS", strings.Join(foreign(p, sidecar().Name), ","))
	p.Spec.Containers = append(p.Spec.Containers, c)
})
