// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// T16 to T18: webhooks that fail on objects of a certain shape.

func shapePatterns() []Case {
	return []Case{
		onPods("T16 makes only one of two missing maps", oneOfTwoMaps).breaks("L2").samples(notedPod()),
		onPods("T17 shortens names to their beginning", logsPerContainer(beginning)).breaks("L5"),
		onPods("T18 stops when its volume exists, for containers that ask", tokenOnRequest(true)).breaks("L4b").samples(askingPod()),
	}
}

func shapeLookalikes() []Case {
	return []Case{
		onPods("T16 makes both maps", changes(func(p *corev1.Pod) {
			setKey(&p.Labels, "agent", "on")
			annotate(p, "agent.io/seen", "yes")
		})).samples(notedPod()),
		onPods("T17 shortens names with a hash", logsPerContainer(hashed)),
		onPods("T18 mounts in each container that asks", tokenOnRequest(false)).samples(askingPod()),
	}
}

func notedPod() *corev1.Pod {
	p := simplePod(map[string]string{"example.com/team": "shop"})
	p.Labels = map[string]string{"app": "shop", "example.com/agent": "on"}
	return p
}

// oneOfTwoMaps panics if the Pod has neither labels nor annotations.
var oneOfTwoMaps = changes(func(p *corev1.Pod) {
	switch {
	case p.Labels == nil:
		p.Labels = map[string]string{}
	case p.Annotations == nil:
		p.Annotations = map[string]string{}
	}
	p.Labels["agent"], p.Annotations["agent.io/seen"] = "on", "yes"
})

// logsPerContainer adds an emptyDir for each container and mounts it there.
func logsPerContainer(shorten func(name string) string) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		for _, c := range appContainers(p) {
			v := emptyDir(shorten("logs-" + c.Name))
			if err := ensureVolume(p, v); err != nil {
				return err
			}
			if err := ensureMount(c, corev1.VolumeMount{Name: v.Name, MountPath: "/var/log/agent"}); err != nil {
				return err
			}
		}
		return nil
	}
}

const longestName = 63

func beginning(name string) string { return name[:min(len(name), longestName)] }

func hashed(name string) string {
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:longestName-9] + "-" + hex.EncodeToString(sum[:4])
}

func askingPod() *corev1.Pod {
	return samplePod(nil, corev1.PodSpec{Containers: []corev1.Container{
		{Name: "app", Image: "app:v1", Env: []corev1.EnvVar{{Name: "AGENT_TOKEN", Value: "/token/shop"}}},
	}})
}

// tokenOnRequest mounts a token in the containers with the variable AGENT_TOKEN. If once is true, it does nothing if
// its volume exists.
func tokenOnRequest(once bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		token := secretVolume("agent-token", "agent-token")
		if once && hasVolume(p, token.Name) {
			return nil
		}
		for _, c := range everyContainer(p) {
			if e := findEnv(c, "AGENT_TOKEN"); e == nil || e.Value == "" {
				continue
			}
			if err := ensureVolume(p, token); err != nil {
				return err
			}
			if err := ensureMount(c, corev1.VolumeMount{Name: token.Name, MountPath: "/token"}); err != nil {
				return err
			}
		}
		return nil
	}
}
