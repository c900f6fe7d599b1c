// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// P06: a count or hash that includes the handler's own parts.

func selfCountingPatterns() []Case {
	return []Case{
		onPods("P06 counts itself", countsItself).breaks("L1"),
		onPods("P06 hashes the containers, its sidecar included", hashesItsSidecar).breaks("L1"),
		onPods("P06 hashes the object that holds the hash", hashesItsHash).breaks("L1"),
	}
}

func selfCountingLookalikes() []Case {
	return []Case{
		onPods("P06 counts the other containers", countsOthers),
		onPods("P06 hashes the other containers", hashesOthers),
	}
}

func countsItself(r *review.Request, p *corev1.Pod) error {
	annotate(p, "agent/containers", strconv.Itoa(len(p.Spec.Containers)))
	return sidecarIfAbsent(r, p)
}

func countsOthers(r *review.Request, p *corev1.Pod) error {
	annotate(p, "agent/containers", strconv.Itoa(len(foreign(p, sidecar().Name))))
	return sidecarIfAbsent(r, p)
}

func hashesItsSidecar(r *review.Request, p *corev1.Pod) error {
	annotate(p, "agent/hash", hash(p.Spec.Containers))
	return sidecarIfAbsent(r, p)
}

func hashesItsHash(_ *review.Request, p *corev1.Pod) error {
	annotate(p, "agent/hash", hash(p))
	return nil
}

func hashesOthers(r *review.Request, p *corev1.Pod) error {
	annotate(p, "agent/hash", hash(foreign(p, sidecar().Name)))
	return sidecarIfAbsent(r, p)
}

// foreign returns the sorted names of the containers that are not in own.
func foreign(p *corev1.Pod, own ...string) []string {
	var names []string
	for _, c := range p.Spec.Containers {
		if !slices.Contains(own, c.Name) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

func hash(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // API types can be written
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
