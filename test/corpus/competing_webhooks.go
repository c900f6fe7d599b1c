// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// P21: webhooks that undo each other's changes. N10 and N12: pairs of webhooks that agree. N11: a Pod with the user's
// own version of the sidecar.

func competingPatterns() []Case {
	return []Case{
		onPods("P21 keeps moving itself to the front", movesFirst(sidecar())).against(movesFirst(rivalContainer())).breaks("L11", "L12"),
		onPods("P21 keeps moving its init container to the front", movesInitFirst(sidecar())).
			against(movesInitFirst(rivalContainer())).breaks("L11", "L12"),
	}
}

func competingLookalikes() []Case {
	return []Case{
		onPods("P21 inserts first when absent", insertsFirst(sidecar())).
			against(movesFirst(rivalContainer()), insertsFirst(rivalContainer())),
		onPods("P21 inserts its init container first when absent", insertsInitFirst(sidecar())).
			against(movesInitFirst(rivalContainer()), insertsInitFirst(rivalContainer())),
		onPods("N10 appends a container that its rival would change", sidecarIfAbsent).against(ensuredEnv, imagePrefixedOnce),
		onPods("N11 the user's own version of the sidecar", sidecarIfAbsent).samples(podWithOwnAgent()).advice(),
		onPods("N12 sets a field only when absent", automount(false)).against(automount(true)).advice(),
	}
}

func rivalContainer() corev1.Container {
	return corev1.Container{Name: "rival", Image: "registry.example.com/rival:v1"}
}

// movesFirst moves its container to the front in every call. Two such webhooks never agree.
func movesFirst(c corev1.Container) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		p.Spec.Containers = first(p.Spec.Containers, c)
		return nil
	}
}

// movesInitFirst moves its init container to the front in every call. Two such webhooks never agree.
func movesInitFirst(c corev1.Container) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		p.Spec.InitContainers = first(p.Spec.InitContainers, c)
		return nil
	}
}

// first returns the list with the container at its front. If the list already has a container of that name, it moves
// that container.
func first(list []corev1.Container, c corev1.Container) []corev1.Container {
	i := slices.IndexFunc(list, func(other corev1.Container) bool { return other.Name == c.Name })
	if i >= 0 {
		c = list[i]
		list = slices.Delete(slices.Clone(list), i, i+1)
	}
	return slices.Insert(list, 0, c)
}

// insertsFirst inserts its container at the front only if the Pod lacks it.
func insertsFirst(c corev1.Container) edit {
	return unless(func(p *corev1.Pod) bool { return nameTaken(p, c.Name) }, movesFirst(c))
}

// insertsInitFirst inserts its init container at the front only if the Pod lacks it.
func insertsInitFirst(c corev1.Container) edit {
	return unless(func(p *corev1.Pod) bool { return nameTaken(p, c.Name) }, movesInitFirst(c))
}

// automount sets automountServiceAccountToken only if it is nil, so the first of two such webhooks decides.
func automount(value bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		if p.Spec.AutomountServiceAccountToken == nil {
			p.Spec.AutomountServiceAccountToken = ptr.To(value)
		}
		return nil
	}
}
