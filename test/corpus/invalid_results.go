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

// B15 to B24: webhooks that make legal objects invalid, or crash on them.

func invalidResults() []Case {
	return []Case{
		onPods("B15 label from the tag of the image", labelFromTag).breaks("L1"),
		onPods("B16 label from generateName", labelFromGenerateName).breaks("L1"),
		onPods("B17 volume for each container, named after it", volumePerContainer).breaks("L1"),
		onPods("B18 the second part of the image", secondPart).breaks("L2"),
		onPods("B19 reads a security context that is nil", nilSecurity).breaks("L2"),
		onPods("B20 escalation forbidden, privileged or not", noEscalation).breaks("L1", "L5"),
		onPods("B21 user namespace, whatever the Pod shares with its node", userNamespace).breaks("L1", "L5"),
		onPods("B22 scheduling gate, scheduled or not", gateAlways).breaks("L1"),
		onPods("B23 controller of what has one", secondController).breaks("L1", "L5"),
		onPods("B24 reads its own annotation without mercy", strictStatus).breaks("L4a", "L2"),
	}
}

// labelFromTag takes the text after the first colon as the tag. This is wrong for a registry with a
// port.
func labelFromTag(_ *review.Request, p *corev1.Pod) error {
	if len(p.Spec.Containers) == 0 {
		return nil
	}
	if _, tag, ok := strings.Cut(p.Spec.Containers[0].Image, ":"); ok {
		if _, has := p.Labels["app.kubernetes.io/version"]; !has {
			setKey(&p.Labels, "app.kubernetes.io/version", tag)
		}
	}
	return nil
}

func labelFromGenerateName(_ *review.Request, p *corev1.Pod) error {
	if p.Labels["app"] == "" && p.GenerateName != "" {
		setKey(&p.Labels, "app", p.GenerateName)
	}
	return nil
}

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

func secondPart(_ *review.Request, p *corev1.Pod) error {
	for _, c := range appContainers(p) {
		if strings.Split(c.Image, ":")[1] == "latest" {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	annotate(p, "example.com/images", "seen")
	return nil
}

func nilSecurity(_ *review.Request, p *corev1.Pod) error {
	for _, c := range appContainers(p) {
		if c.SecurityContext.Privileged == nil {
			c.SecurityContext.Privileged = ptr.To(false)
		}
	}
	return nil
}

func noEscalation(_ *review.Request, p *corev1.Pod) error {
	if isWindows(p) {
		return nil
	}
	for _, c := range everyContainer(p) {
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		if c.SecurityContext.AllowPrivilegeEscalation == nil {
			c.SecurityContext.AllowPrivilegeEscalation = ptr.To(false)
		}
	}
	return nil
}

func userNamespace(_ *review.Request, p *corev1.Pod) error {
	if p.Spec.HostUsers == nil && !isWindows(p) {
		p.Spec.HostUsers = ptr.To(false)
	}
	return nil
}

func gateAlways(_ *review.Request, p *corev1.Pod) error {
	own := corev1.PodSchedulingGate{Name: "example.com/quota"}
	for _, g := range p.Spec.SchedulingGates {
		if g == own {
			return nil
		}
	}
	p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, own)
	return nil
}

// secondController adds its group as a controller. Pods of a ReplicaSet already have one.
func secondController(_ *review.Request, p *corev1.Pod) error {
	own := metav1.OwnerReference{
		APIVersion: "example.com/v1", Kind: "Group", Name: "shop", UID: "3c1d7c52-0f53-4cc0-9f5e-8f6a6f1f2b10", Controller: ptr.To(true),
	}
	for _, r := range p.OwnerReferences {
		if r.UID == own.UID {
			return nil
		}
	}
	p.OwnerReferences = append(p.OwnerReferences, own)
	return nil
}

func strictStatus(r *review.Request, p *corev1.Pod) error {
	const key = "agent.example.com/status"
	status := struct {
		Version    string   `json:"version"`
		Containers []string `json:"containers"`
	}{Version: "v1", Containers: []string{side().Name}}
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
