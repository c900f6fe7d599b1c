// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/patch"
)

// P13 to P16 and P25: webhooks whose patches remove too much, or do not apply.

func patchDocumentPatterns() []Case {
	return []Case{
		documentCase("P13 replaces the whole map", replacesMap("metadata")).breaks("L10"),
		deploymentCase("P13 replaces the whole map", document(replacesMap("spec", "template", "metadata"))).breaks("L10"),
		documentCase("P14 replaces the whole list", replacesList).breaks("L10", "L5"),
		documentCase("P15 slash not escaped", slashNotEscaped).breaks("L10"),
		documentCase("P15 missing parent", missingParent).breaks("L10"),
		podCase("P16 typed round trip drops unknown fields", ofHandler(roundTrip[corev1.Pod](annotatePod))).breaks("L9"),
		deploymentCase("P16 typed round trip drops unknown fields", roundTrip[appsv1.Deployment](annotateDeployment)).breaks("L9"),
		documentCase("P25 removes in ascending order", removesAscending).breaks("L10").samples(podWithLegacy()),
	}
}

func patchDocumentLookalikes() []Case {
	return []Case{
		documentCase("P13 adds the key, or the map", addsKey("metadata")),
		deploymentCase("P13 adds the key, or the map", document(addsKey("spec", "template", "metadata"))),
		documentCase("P14 appends to the list, or adds it", appendsToList),
		documentCase("P15 escaped, with its parent", escaped),
		podCase("P16 diff before and after", ofHandler(diffBeforeAfter[corev1.Pod](annotatePod))),
		deploymentCase("P16 diff before and after", diffBeforeAfter[appsv1.Deployment](annotateDeployment)),
		documentCase("P16 operations by hand", addsKey("metadata")),
		documentCase("P25 removes in descending order", removesDescending).samples(podWithLegacy()),
		documentCase("N5 removes legacy elements, declared", removesDescending).samples(podWithLegacy()).
			except("/spec/volumes/*", "", "legacy volumes are gone from the cluster").
			except("/spec/containers/*/volumeMounts/*", "", "mounts of legacy volumes").
			except("/spec/initContainers/*/volumeMounts/*", "", "mounts of legacy volumes"),
	}
}

func documentCase(name string, operations func(doc map[string]any) patch.Patch) Case {
	return podCase(name, func() http.Handler { return document(operations) })
}

// isOK reports whether the metadata at the path has the annotation agent/ok.
func isOK(doc map[string]any, at []string) bool {
	ok, _ := member[string](doc, with(at, "annotations", "agent/ok")...)
	return ok == "yes"
}

// with returns a copy of the path with names appended.
func with(at []string, names ...string) []string { return append(at[:len(at):len(at)], names...) }

// replacesMap replaces all annotations with its own. It removes the user's annotations.
func replacesMap(at ...string) func(map[string]any) patch.Patch {
	return func(doc map[string]any) patch.Patch {
		if isOK(doc, at) {
			return nil
		}
		return patch.Patch{put(doc, map[string]string{"agent/ok": "yes"}, with(at, "annotations")...)}
	}
}

// addsKey adds one annotation. It adds the map only if the map is missing.
func addsKey(at ...string) func(map[string]any) patch.Patch {
	return func(doc map[string]any) patch.Patch {
		if isOK(doc, at) {
			return nil
		}
		return patch.Patch{put(doc, "yes", with(at, "annotations", "agent/ok")...)}
	}
}

func setup() corev1.Container {
	return corev1.Container{Name: "setup", Image: "registry.example.com/setup:v1"}
}

// named reports whether doc has a container with the name.
func named(doc map[string]any, name string) bool {
	for _, list := range []string{"initContainers", "containers"} {
		elements, _ := member[[]any](doc, "spec", list)
		for _, e := range elements {
			if c, _ := e.(map[string]any); c["name"] == name {
				return true
			}
		}
	}
	return false
}

// replacesList replaces all init containers with its own. It removes the user's init containers.
func replacesList(doc map[string]any) patch.Patch {
	if named(doc, "setup") {
		return nil
	}
	return patch.Patch{add("/spec/initContainers", []corev1.Container{setup()})}
}

// appendsToList appends its init container, and creates the list only if it is missing.
func appendsToList(doc map[string]any) patch.Patch {
	if named(doc, "setup") {
		return nil
	}
	if _, ok := member[[]any](doc, "spec", "initContainers"); ok {
		return patch.Patch{add("/spec/initContainers/-", setup())}
	}
	return replacesList(doc)
}

// slashNotEscaped does not escape the slash in a key, so the path in its patch does not exist.
func slashNotEscaped(doc map[string]any) patch.Patch {
	var p patch.Patch
	if _, ok := member[map[string]any](doc, "metadata", "annotations"); !ok {
		p = append(p, add("/metadata/annotations", map[string]string{}))
	}
	return append(p, add("/metadata/annotations/agent.io/status", "ok"))
}

// missingParent adds a key to annotations that may not exist.
func missingParent(doc map[string]any) patch.Patch {
	if status, _ := member[string](doc, "metadata", "annotations", "agent.io/status"); status == "ok" {
		return nil
	}
	return patch.Patch{add("/metadata/annotations/agent.io~1status", "ok")}
}

// escaped escapes the slash in the key and creates missing annotations.
func escaped(doc map[string]any) patch.Patch {
	if status, _ := member[string](doc, "metadata", "annotations", "agent.io/status"); status == "ok" {
		return nil
	}
	return patch.Patch{put(doc, "ok", "metadata", "annotations", "agent.io/status")}
}

func annotatePod(p *corev1.Pod) { annotate(p, "agent/ok", "yes") }

func annotateDeployment(d *appsv1.Deployment) {
	setKey(&d.Spec.Template.Annotations, "agent/ok", "yes")
}

// roundTrip returns a handler that compares the received document with the encoding of its own type.
// Its patch removes every field that the type lacks.
func roundTrip[T any](change func(*T)) handler { return changesJSON(change, false) }

// diffBeforeAfter returns a handler that compares two encodings of the same type, so unknown fields
// stay. The paths of such a patch may be missing in the received document, except for annotations.
func diffBeforeAfter[T any](change func(*T)) handler { return changesJSON(change, true) }

// legacy returns the indexes of the elements whose name begins with "legacy-".
func legacy(list []any) []int {
	var places []int
	for i, e := range list {
		v, _ := e.(map[string]any)
		if name, _ := v["name"].(string); strings.HasPrefix(name, "legacy-") {
			places = append(places, i)
		}
	}
	return places
}

// remove returns an operation that removes the list element with index i.
func remove(at patch.Pointer, i int) patch.Operation {
	return patch.Operation{Op: patch.Remove, Path: at.Index(i)}
}

// removesAscending removes list elements from first to last. Each removal shifts the indexes of the
// next ones.
func removesAscending(doc map[string]any) patch.Patch {
	var p patch.Patch
	volumes, _ := member[[]any](doc, "spec", "volumes")
	for _, i := range legacy(volumes) {
		p = append(p, remove("/spec/volumes", i))
	}
	return p
}

// removesDescending removes list elements from last to first, which keeps the other indexes valid. It
// also removes the mounts, because the Pod would be invalid without their volumes.
func removesDescending(doc map[string]any) patch.Patch {
	var p patch.Patch
	removeFrom := func(at patch.Pointer, list []any) {
		places := legacy(list)
		for k := len(places) - 1; k >= 0; k-- {
			p = append(p, remove(at, places[k]))
		}
	}
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := member[[]any](doc, "spec", list)
		for i, e := range containers {
			c, _ := e.(map[string]any)
			mounts, _ := member[[]any](c, "volumeMounts")
			removeFrom(patch.Pointer("/spec").Append(list).Index(i).Append("volumeMounts"), mounts)
		}
	}
	volumes, _ := member[[]any](doc, "spec", "volumes")
	removeFrom("/spec/volumes", volumes)
	return p
}

func podWithLegacy() *corev1.Pod {
	return samplePod(nil, corev1.PodSpec{
		Volumes:    []corev1.Volume{emptyDir("legacy-a"), emptyDir("keep")},
		Containers: []corev1.Container{{Name: "app", Image: "app:v1"}},
	})
}
