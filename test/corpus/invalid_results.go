// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// B15 to B24: webhooks that make valid objects invalid, or crash on them.

func invalidResults() []Case {
	return []Case{
		onPods("B15 sets a label to the text after the first colon of an image", labelFromTag).breaks("L1"),
		onPods("B16 sets a label to generateName", labelFromGenerateName).breaks("L1"),
		onPods("B17 names volumes after containers", volumePerContainer).breaks("L1"),
		onPods("B18 assumes that each image has a tag", assumesTag).breaks("L2"),
		onPods("B19 reads a security context that is nil", readsNilSecurityContext).breaks("L2"),
		onPods("B20 forbids escalation, also for privileged containers", noEscalation).breaks("L1", "L5"),
		onPods("B21 sets a user namespace beside host namespaces", userNamespace).breaks("L1", "L5"),
		onPods("B22 adds a scheduling gate to scheduled Pods", gatesScheduledPods).breaks("L1"),
		onPods("B23 adds a second controller", addsSecondController).breaks("L1", "L5"),
		onPods("B24 fails if its annotation is not valid JSON", parsesStatusStrictly).breaks("L4a", "L2"),
	}
}

// labelFromTag sets a label to the text after the first colon of an image. If the registry has a
// port, that text is not a valid label.
var labelFromTag = changes(func(p *corev1.Pod) {
	if len(p.Spec.Containers) == 0 {
		return
	}
	if _, tag, ok := strings.Cut(p.Spec.Containers[0].Image, ":"); ok {
		if _, has := p.Labels["app.kubernetes.io/version"]; !has {
			setKey(&p.Labels, "app.kubernetes.io/version", tag)
		}
	}
})

// labelFromGenerateName sets a label to generateName, which may end in a dash. Such a label is
// invalid.
var labelFromGenerateName = changes(func(p *corev1.Pod) {
	if p.Labels["app"] == "" && p.GenerateName != "" {
		setKey(&p.Labels, "app", p.GenerateName)
	}
})

// volumePerContainer names a volume after each container, with a suffix. The name may be longer than 63 characters.
func volumePerContainer(_ *review.Request, p *corev1.Pod) error {
	for _, c := range appContainers(p) {
		name := c.Name + "-logs"
		if err := ensureVolume(p, emptyDir(name)); err != nil {
			return err
		}
		if err := ensureMount(c, corev1.VolumeMount{Name: name, MountPath: "/var/log/app"}); err != nil {
			return err
		}
	}
	return nil
}

// assumesTag reads the part after the colon of each image. It panics on an image without a tag.
var assumesTag = changes(func(p *corev1.Pod) {
	for _, c := range appContainers(p) {
		if strings.Split(c.Image, ":")[1] == "latest" {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	annotate(p, "example.com/images", "seen")
})

// readsNilSecurityContext reads the security context of each container. It panics where there is none.
var readsNilSecurityContext = changesAppContainers(func(c *corev1.Container) {
	if c.SecurityContext.Privileged == nil {
		c.SecurityContext.Privileged = ptr.To(false)
	}
})

// noEscalation forbids privilege escalation in every container. The API server rejects this for
// privileged containers.
var noEscalation = unless(isWindows, changesContainers(func(c *corev1.Container) {
	if s := securityOf(c); s.AllowPrivilegeEscalation == nil {
		s.AllowPrivilegeEscalation = ptr.To(false)
	}
}))

// userNamespace sets hostUsers to false. The API server rejects this for a Pod that uses another namespace of the host,
// such as its network.
var userNamespace = changes(func(p *corev1.Pod) {
	if p.Spec.HostUsers == nil && !isWindows(p) {
		p.Spec.HostUsers = ptr.To(false)
	}
})

// gatesScheduledPods adds a scheduling gate. The API server rejects this for a Pod that already has a
// node.
var gatesScheduledPods = changes(func(p *corev1.Pod) {
	own := corev1.PodSchedulingGate{Name: "example.com/quota"}
	for _, g := range p.Spec.SchedulingGates {
		if g == own {
			return
		}
	}
	p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, own)
})

// addsSecondController adds an owner that is a controller. The Pods of a ReplicaSet already have one,
// and two are invalid.
var addsSecondController = changes(func(p *corev1.Pod) {
	own := metav1.OwnerReference{
		APIVersion: "example.com/v1", Kind: "Group", Name: "shop", UID: "3c1d7c52-0f53-4cc0-9f5e-8f6a6f1f2b10", Controller: ptr.To(true),
	}
	for _, r := range p.OwnerReferences {
		if r.UID == own.UID {
			return
		}
	}
	p.OwnerReferences = append(p.OwnerReferences, own)
})

// parsesStatusStrictly decodes its annotation and fails if it is not valid JSON. Any user can write
// the annotation.
func parsesStatusStrictly(r *review.Request, p *corev1.Pod) error {
	const key = "agent.example.com/status"
	status := struct {
		Version    string   `json:"version"`
		Containers []string `json:"containers"`
	}{Version: "v1", Containers: []string{sidecar().Name}}
	if text, ok := p.Annotations[key]; ok {
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			return err
		}
	}
	if err := sidecarIfAbsent(r, p); err != nil {
		return err
	}
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	annotate(p, key, string(text))
	return nil
}
