// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// M59 and M60: webhooks that ignore what the author of an object has written: a 0, or a later change.

func authorPatterns() []Case {
	return []Case{
		onPods("M59 takes the group 0 for none", fillsGroup(false)).breaks("L5"),
		triggered("M60 moves the first value of its annotation into a label", zoned(), movesZone(false)).on(create, update).breaks("L6"),
	}
}

func authorLookalikes() []Case {
	return []Case{
		onPods("M59 fills an absent group", fillsGroup(true)),
		triggered("M60 moves each value of its annotation into a label", zoned(), movesZone(true)).on(create, update),
	}
}

// fillsGroup sets the group of a Pod's volumes. If zero is set, the group of the author may be 0.
func fillsGroup(zero bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		if p.Spec.SecurityContext == nil {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{}
		}
		if group := &p.Spec.SecurityContext.FSGroup; *group == nil || !zero && **group == 0 {
			*group = new(int64(2000))
		}
		return nil
	}
}

func zoned() *corev1.Pod { return podWith(map[string]string{"zone.example.com/want": "a"}, nil) }

// movesZone moves an annotation into a label. If later is set, a later value of the annotation replaces the label.
func movesZone(later bool) func() http.Handler {
	h := pods(func(_ *review.Request, p *corev1.Pod) error {
		zone, wanted := p.Annotations["zone.example.com/want"]
		if !wanted {
			return nil
		}
		delete(p.Annotations, "zone.example.com/want")
		if p.Labels["zone"] == "" || later {
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			p.Labels["zone"] = zone
		}
		return nil
	})
	return func() http.Handler { return h }
}
