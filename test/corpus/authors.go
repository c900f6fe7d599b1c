// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"net/http"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// M59 and M60 are webhooks that ignore what the author of an object has written: a 0, or a later change. M61 has a fault
// in what it does for an annotation that the author may add.

func authorPatterns() []Case {
	return []Case{
		onKind("M59 treats a TTL of 0 as unset", "batch/v1", "jobs", fillsTTL(false)).on(create).breaks("L5"),
		triggered("M60 moves the first value of its annotation into a label", zoned(), movesZone(false)).on(create, update).breaks("L6"),
		podCase("M61 adds a flag in each call in debug mode", debugs(false)).breaks("L1"),
	}
}

func authorLookalikes() []Case {
	return []Case{
		onKind("M59 fills an absent TTL", "batch/v1", "jobs", fillsTTL(true)).on(create),
		triggered("V38 moves each value of its annotation into a label", zoned(), movesZone(true)).on(create, update),
		podCase("M61 adds a flag once in debug mode", debugs(true)),
	}
}

// fillsTTL sets the time after which a finished Job is deleted. If zero is set, the TTL of the author may be 0.
func fillsTTL(zero bool) func(_ *review.Request, j *batchv1.Job) error {
	return func(_ *review.Request, j *batchv1.Job) error {
		if ttl := &j.Spec.TTLSecondsAfterFinished; *ttl == nil || !zero && **ttl == 0 {
			*ttl = new(int32(300))
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

// debugs makes Pods run as a user. In debug mode, it also adds a flag to their containers. If once is set, it adds no
// second flag.
func debugs(once bool) func() http.Handler {
	h := pods(func(_ *review.Request, p *corev1.Pod) error {
		if p.Spec.SecurityContext == nil {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{}
		}
		if p.Spec.SecurityContext.RunAsNonRoot == nil {
			p.Spec.SecurityContext.RunAsNonRoot = new(true)
		}
		if p.Annotations["debug.example.com/mode"] != "verbose" {
			return nil
		}
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			if !once || !slices.Contains(c.Args, "--verbose") {
				c.Args = append(c.Args, "--verbose")
			}
		}
		return nil
	})
	return func() http.Handler { return h }
}
