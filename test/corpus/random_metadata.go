// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

var metadataParts = []maker{labelPart, annotationPart, nodeSelectorPart, hashPart}

// mapBugs returns the bugs of a part that sets one entry of a map.
func mapBugs(in func(p *corev1.Pod) *map[string]string, key, value string) []bug {
	return []bug{
		broken("replaces the map", func(_ *review.Request, p *corev1.Pod) error {
			if m := in(p); (*m)[key] != value {
				*m = map[string]string{key: value}
			}
			return nil
		}, "L10", "L5", "L4b"),
		broken("random value", func(_ *review.Request, p *corev1.Pod) error {
			setKey(in(p), key, "v"+randomHex())
			return nil
		}, "L1", "L3"),
		{name: "counts calls", laws: []string{"L1", "L3"}, new: func() edit {
			var calls atomic.Int64
			return func(_ *review.Request, p *corev1.Pod) error {
				setKey(in(p), key, strconv.FormatInt(calls.Add(1), 10))
				return nil
			}
		}},
		broken("makes the value longer", func(_ *review.Request, p *corev1.Pod) error {
			setKey(in(p), key, (*in(p))[key]+"x")
			return nil
		}, "L1", "L12"),
		denied(func(p *corev1.Pod) bool { return (*in(p))[key] != "" }, setsKey(in, key, value)),
	}
}

func setsKey(in func(p *corev1.Pod) *map[string]string, key, value string) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		setKey(in(p), key, value)
		return nil
	}
}

// ensuresKey sets an entry of a map unless it exists.
func ensuresKey(in func(p *corev1.Pod) *map[string]string, key, value string) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		if _, ok := (*in(p))[key]; !ok {
			setKey(in(p), key, value)
		}
		return nil
	}
}

func mapPart(m *partInputs, name, prefix string, in func(p *corev1.Pod) *map[string]string) part {
	key, value := prefix+m.word, randomWord(m.Rand)
	return part{name: name, ensure: ensuresKey(in, key, value), bugs: mapBugs(in, key, value)}
}

func labelsOf(p *corev1.Pod) *map[string]string      { return &p.Labels }
func annotationsOf(p *corev1.Pod) *map[string]string { return &p.Annotations }
func selectorOf(p *corev1.Pod) *map[string]string    { return &p.Spec.NodeSelector }

func labelPart(m *partInputs) part { return mapPart(m, "label", "bugs.example.com/", labelsOf) }

func nodeSelectorPart(m *partInputs) part { return mapPart(m, "nodeSelector", "node-", selectorOf) }

func annotationPart(m *partInputs) part {
	p := mapPart(m, "annotation", "bugs.example.com/", annotationsOf)
	key := "bugs.example.com/" + m.word
	p.bugs = append(p.bugs, broken("wall clock", func(_ *review.Request, p *corev1.Pod) error {
		annotate(p, key, time.Now().Format(time.RFC3339Nano))
		return nil
	}, "L1", "L3"))
	return p
}

// hashPart stores a hash of the names of the containers that are not the handler's own.
func hashPart(m *partInputs) part {
	key := "bugs.example.com/hash-" + m.word
	hashed := func(of func(p *corev1.Pod) any) edit {
		return func(_ *review.Request, p *corev1.Pod) error {
			annotate(p, key, hash(of(p)))
			return nil
		}
	}
	return part{
		name:   "hash",
		ensure: hashed(func(p *corev1.Pod) any { return foreign(p, m.own...) }),
		bugs: []bug{
			broken("hashes the hash", hashed(func(p *corev1.Pod) any { return p.Annotations }), "L1"),
			broken("hashes everything", hashed(func(p *corev1.Pod) any { return p }), "L1"),
			broken("hashes the time", hashed(func(*corev1.Pod) any { return time.Now().UnixNano() }), "L1", "L3"),
		},
	}
}
