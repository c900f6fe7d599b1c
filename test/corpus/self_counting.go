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

// P06: webhooks that include their own parts in a count or hash.

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

// countsItself counts the containers and then adds its own. A second call has a count that is one higher.
var countsItself = inOrder(changes(func(p *corev1.Pod) {
	annotate(p, "agent/containers", strconv.Itoa(len(p.Spec.Containers)))
}), sidecarIfAbsent)

// countsOthers counts the containers that are not its own.
var countsOthers = inOrder(changes(func(p *corev1.Pod) {
	annotate(p, "agent/containers", strconv.Itoa(len(foreign(p, sidecar().Name))))
}), sidecarIfAbsent)

// hashesItsSidecar hashes the containers and then adds its own. In a second call the hash differs.
func hashesItsSidecar(r *review.Request, p *corev1.Pod) error {
	annotate(p, "agent/hash", hash(p.Spec.Containers))
	return sidecarIfAbsent(r, p)
}

// hashesItsHash stores a hash of the Pod in the Pod. A second call also hashes the first hash.
var hashesItsHash = changes(func(p *corev1.Pod) {
	annotate(p, "agent/hash", hash(p))
})

// hashesOthers hashes the names of the containers that are not its own.
func hashesOthers(r *review.Request, p *corev1.Pod) error {
	annotate(p, "agent/hash", hash(foreign(p, sidecar().Name)))
	return sidecarIfAbsent(r, p)
}

// foreign returns the sorted names of the containers that are not listed in own.
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

// hash returns a short hash of the JSON encoding of v.
func hash(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // API types always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
