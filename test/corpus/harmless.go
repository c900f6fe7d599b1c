// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"math/rand/v2"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// N1 to N4 and N7: unusual but correct webhooks. The others are in patch_documents.go (N5), updates.go (N6 and N9),
// duplicate_keys.go (N8) and competing_webhooks.go (N10 to N12).

func harmless() []Case {
	return []Case{
		onPods("N1 overwrites a policy field", disablesTokenMount).advice(),
		onPods("N1 overwrites a policy field, declared", disablesTokenMount).
			except("/spec/automountServiceAccountToken", "", "no Pod gets a token"),
		onPods("N1 overwrites the value of a variable", constantPort).advice(),
		onPods("N1 overwrites the value of a variable, declared", constantPort).
			except("/spec/containers/*/env/*/value", "", "PORT is ours").
			except("/spec/initContainers/*/env/*/value", "", "PORT is ours"),
		onPods("N1 overwrites its own annotation", annotatedStatus).advice(),
		onPods("N2 denies a conflicting object in every call", deniesConflict),
		shuffledCase(),
		onPods("N4 iterates a map into labels and annotations", labelsFromMap),
		onPods("N4 iterates a map into nodeSelector", nodeSelectorFromMap),
		onPods("N4 iterates a map into limits", limitsFromMap),
		counterCase("N7 counts its calls", func(p *corev1.Pod, _ int64) { annotate(p, "agent/ok", "yes") }),
		cachingCase(),
	}
}

// disablesTokenMount overwrites a field of the user, as a policy. The result is stable, so the harness may give at most
// advice.
var disablesTokenMount = changes(func(p *corev1.Pod) {
	p.Spec.AutomountServiceAccountToken = ptr.To(false)
})

// deniesConflict denies Pods that it cannot serve. It denies them in every call, so the denials are
// stable.
func deniesConflict(r *review.Request, p *corev1.Pod) error {
	if p.Spec.HostPID || p.Annotations["agent/mode"] == "off" {
		return denial("the agent needs a process namespace of its own")
	}
	annotate(p, "agent/mode", "on")
	return sidecarIfAbsent(r, p)
}

// shuffledCase returns a case whose operations have a random order but always the same result.
func shuffledCase() Case {
	return documentCase("N3 operations in varying order", func(doc map[string]any) patch.Patch {
		var p, parents patch.Patch
		annotations, ok := member[map[string]any](doc, "metadata", "annotations")
		if !ok {
			parents = patch.Patch{add("/metadata/annotations", map[string]string{})}
		}
		for name, value := range settings() {
			if annotations["agent-"+name] != value {
				p = append(p, add("/metadata/annotations/agent-"+patch.Pointer(name), value))
			}
		}
		if len(p) == 0 {
			return nil
		}
		rand.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
		return append(parents, p...)
	})
}

// labelsFromMap copies a map into the labels, where the iteration order does not matter.
func labelsFromMap(r *review.Request, p *corev1.Pod) error {
	for name, value := range settings() {
		setKey(&p.Labels, "agent-"+name, value)
	}
	return mapIntoMap(r, p)
}

// nodeSelectorFromMap copies a map into nodeSelector, where the iteration order does not matter.
var nodeSelectorFromMap = changes(func(p *corev1.Pod) {
	for name, value := range settings() {
		setKey(&p.Spec.NodeSelector, "agent-"+name, value)
	}
})

// limitsFromMap copies a map into the limits, where the iteration order does not matter.
var limitsFromMap = changes(func(p *corev1.Pod) {
	limits := map[corev1.ResourceName]string{corev1.ResourceMemory: "128Mi", corev1.ResourceCPU: "500m", corev1.ResourceEphemeralStorage: "1Gi"}
	if p.Spec.Resources != nil {
		return
	}
	for name, limit := range limits {
		for _, c := range everyContainer(p) {
			defaultLimit(c, name, resource.MustParse(limit))
		}
	}
})

// maxCached is the number of cached responses at which the cache is emptied.
const maxCached = 256

// cachingCase returns a case that caches its patches by object. Equal objects get equal patches.
func cachingCase() Case {
	return podCase("N7 caches its responses", func() http.Handler {
		var mu sync.Mutex
		known := map[string]patch.Patch{}
		inner := pods(tokenMounted)
		return handler(func(r *review.Request) (patch.Patch, error) {
			mu.Lock()
			defer mu.Unlock()
			if p, ok := known[string(r.Object)]; ok {
				return p, nil
			}
			p, err := inner(r)
			if len(known) == maxCached {
				clear(known)
			}
			if err == nil {
				known[string(r.Object)] = p
			}
			return p, err
		})
	})
}
