// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// M01 to M11: webhooks whose second call changes something again, in ways that patterns P01 to P26 do
// not cover.

func repeatedChangePatterns() []Case {
	return []Case{
		onPods("M01 toggles a value", toggled).breaks("L1"),
		onPods("M02 shortens a label to more than its maximum", shortenedTo(16)).breaks("L1"),
		onPods("M03 compares with a template that has no defaults", comparedWhole).breaks("L1").advice(),
		onPods("M04 requests more than the limit", requested(false)).breaks("L1"),
		deploymentCase("M05 summarizes annotations, its summary included", typed(summarized(""))).breaks("L1"),
		onPods("M06 adds its owner reference in every call", owned(false)).breaks("L1"),
		onPods("M07 adds its finalizer in every call", finalized(false)).breaks("L1"),
		onPods("M08 compares pointers", spread(samePointers)).breaks("L1"),
		onPods("M09 prepends its directory in every call", pathBefore(false)).breaks("L1"),
		onPods("M10 needs two calls", inTwoCalls).breaks("L1"),
		onPods("M11 writes into a nil map", intoNilMap(false)).breaks("L2"),
	}
}

func repeatedChangeLookalikes() []Case {
	return []Case{
		onPods("M01 sets a value", func(_ *review.Request, p *corev1.Pod) error {
			if _, ok := p.Annotations["agent/turn"]; !ok {
				annotate(p, "agent/turn", "on")
			}
			return nil
		}),
		onPods("M02 shortens a label to its maximum", shortenedTo(10)),
		onPods("M03 compares what it sets", sidecarInPlace),
		onPods("M04 requests no more than the limit", requested(true)),
		deploymentCase("M05 summarizes the other annotations", typed(summarized("agent/"))),
		onPods("M06 adds its owner reference once", owned(true)),
		onPods("M07 adds its finalizer once", finalized(true)),
		onPods("M08 compares values", spread(sameKeys)),
		onPods("M09 prepends its directory once", pathBefore(true)),
		onPods("M10 needs one call", func(r *review.Request, p *corev1.Pod) error {
			annotate(p, "agent/stage", "done")
			return sidecarIfAbsent(r, p)
		}),
		onPods("M11 creates a missing map", intoNilMap(true)),
	}
}

// toggled switches between two values. Every call changes the Pod.
var toggled = changes(func(p *corev1.Pod) {
	if p.Annotations["agent/turn"] == "on" {
		annotate(p, "agent/turn", "off")
		return
	}
	annotate(p, "agent/turn", "on")
})

// shortenedTo replaces a label value of more than 20 characters with its prefix, a dash and a hash of 8
// characters. With a prefix of 16 the result has 25 characters, so the next call shortens it again.
func shortenedTo(begin int) edit {
	const maxCached = 20
	return func(_ *review.Request, p *corev1.Pod) error {
		for key, value := range p.Labels {
			if len(value) > maxCached {
				p.Labels[key] = value[:begin] + "-" + hash(value)[:8]
			}
		}
		return nil
	}
}

// comparedWhole compares its container with a copy that lacks the defaults of the API server. The two always differ, so
// every call replaces the container.
var comparedWhole = changes(func(p *corev1.Pod) {
	want := sidecar()
	if c := container(p, want.Name); c == nil {
		p.Spec.Containers = append(p.Spec.Containers, want)
	} else if !equality.Semantic.DeepEqual(*c, want) {
		*c = want
	}
})

// requested raises the memory requests to 1Gi. If correct is false, it raises them even above the limit, which is
// invalid.
func requested(correct bool) edit {
	least := resource.MustParse("1Gi")
	return func(_ *review.Request, p *corev1.Pod) error {
		if p.Spec.Resources != nil {
			return nil
		}
		for _, c := range everyContainer(p) {
			want := least
			if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && correct && limit.Cmp(want) < 0 {
				want = limit
			}
			if request := c.Resources.Requests[corev1.ResourceMemory]; request.Cmp(want) < 0 {
				if c.Resources.Requests == nil {
					c.Resources.Requests = corev1.ResourceList{}
				}
				c.Resources.Requests[corev1.ResourceMemory] = want.DeepCopy()
			}
		}
		return nil
	}
}

// summarized writes the annotations of the template into one annotation. It skips keys with the given
// prefix. Without a prefix, every call also summarizes the previous summary.
func summarized(without string) func(*review.Request, *appsv1.Deployment) error {
	return func(_ *review.Request, d *appsv1.Deployment) error {
		t := &d.Spec.Template
		var all []string
		for key, value := range t.Annotations {
			if without == "" || !strings.HasPrefix(key, without) {
				all = append(all, key+"="+value)
			}
		}
		slices.Sort(all)
		setKey(&t.Annotations, "agent/all", strings.Join(all, ","))
		return nil
	}
}

// owned adds its owner reference. If correct is false, it adds the reference in every call, without a check.
func owned(correct bool) edit {
	own := metav1.OwnerReference{APIVersion: "bugs.example.com/v1", Kind: "Widget", Name: "agent", UID: "0b2f8a1e-5b0a-4f0e-9a51-0d2b8f3c6a01"}
	return func(_ *review.Request, p *corev1.Pod) error {
		if !correct || !slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == own.UID }) {
			p.OwnerReferences = append(p.OwnerReferences, own)
		}
		return nil
	}
}

// finalized adds its finalizer. If correct is false, it adds the finalizer in every call, without a check.
func finalized(correct bool) edit {
	return func(r *review.Request, p *corev1.Pod) error {
		if correct {
			return finalizer(r, p)
		}
		p.Finalizers = append(p.Finalizers, ownFinalizer)
		return nil
	}
}

// spread adds a spread constraint unless same returns true for one that the Pod already has.
func spread(same func(a, b corev1.TopologySpreadConstraint) bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		own := corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: "bugs.example.com/rack", WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"bugs.example.com/app": "agent"}},
		}
		if !slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return same(c, own) }) {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, own)
		}
		return nil
	}
}

// samePointers compares the pointers to the selectors. They always differ between two calls.
func samePointers(a, b corev1.TopologySpreadConstraint) bool {
	return a.TopologyKey == b.TopologyKey && a.LabelSelector == b.LabelSelector
}

// sameKeys compares the fields that the API server requires to be unique.
func sameKeys(a, b corev1.TopologySpreadConstraint) bool {
	return a.TopologyKey == b.TopologyKey && a.WhenUnsatisfiable == b.WhenUnsatisfiable
}

// pathBefore puts its directory before a search path. If correct is false, it adds the directory in every call, without
// a check.
func pathBefore(correct bool) edit {
	const bin = "/agent/bin"
	return func(_ *review.Request, p *corev1.Pod) error {
		for _, c := range everyContainer(p) {
			e := findEnv(c, "AGENT_PATH")
			switch {
			case e == nil:
				ensureEnv(c, "AGENT_PATH", bin)
			case e.ValueFrom != nil:
				return denial("AGENT_PATH must be a plain value")
			case !correct || !slices.Contains(strings.Split(e.Value, ":"), bin):
				e.Value = strings.TrimSuffix(bin+":"+e.Value, ":")
			}
		}
		return nil
	}
}

// inTwoCalls sets an annotation in the first call and adds its container only in the second.
func inTwoCalls(r *review.Request, p *corev1.Pod) error {
	if p.Annotations["agent/stage"] == "" {
		annotate(p, "agent/stage", "begun")
		return nil
	}
	return sidecarIfAbsent(r, p)
}

// intoNilMap sets a label. If correct is false, it panics on a Pod without labels.
func intoNilMap(correct bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		if p.Labels == nil && correct {
			p.Labels = map[string]string{}
		}
		p.Labels["bugs.example.com/seen"] = "yes"
		return nil
	}
}
