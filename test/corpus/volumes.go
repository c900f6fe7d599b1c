// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"crypto/rand"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// P05, P10, P11 and P26: webhooks that give volumes wrong names, forget mounts, or mount at a path that is already in
// use.

func volumePatterns() []Case {
	return []Case{
		onPods("P05 random generated name", randomName).breaks("L1", "L3"),
		onPods("P10 early return when its volume exists", earlyReturn).breaks("L4b"),
		onDeployments("P10 early return when its volume exists", earlyReturn).breaks("L4b"),
		onPods("P11 the user mounts that path from another volume", pathUnchecked).breaks("L1", "L5"),
		onPods("P26 name derived from metadata.name", nameFromMetadata).breaks("L1", "L5"),
		onPods("P26 branches on metadata.namespace", namespaceFromMetadata).breaks("L3").advice(),
	}
}

func volumeLookalikes() []Case {
	return []Case{
		onPods("P05 fixed name", tokenMounted),
		onPods("P05 name hashed from the namespace", nameFromNamespace),
		onPods("P10 volume once, mount per container", tokenMounted),
		onDeployments("P10 volume once, mount per container", tokenMounted),
		onPods("P11 checks the path", pathChecked),
		onPods("P11 denies the Pod", dataMounted),
		onPods("P26 a constant", configMounted),
		onPods("P26 branches on request.namespace", namespaceFromRequest),
	}
}

// randomName gives its volume a random name. A second call adds a second volume.
func randomName(_ *review.Request, p *corev1.Pod) error {
	name := "tok-" + randomHex()
	return ensureMounted(p, emptyDir(name), "/"+name)
}

func randomHex() string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// nameFromNamespace names its volume after the namespace, so every call finds the same name.
func nameFromNamespace(r *review.Request, p *corev1.Pod) error {
	name := "tok-" + hash([]string{"agent", r.Namespace})
	return ensureMounted(p, emptyDir(name), "/"+name)
}

func token() corev1.Volume { return secretVolume("tok", "agent-token") }

// tokenMounted adds its volume and, in each container, its mount. It adds each only if it is missing.
func tokenMounted(_ *review.Request, p *corev1.Pod) error {
	return ensureMounted(p, token(), "/tok")
}

// earlyReturn skips Pods that have its volume. A container added after the first call gets no mount.
var earlyReturn = unless(func(p *corev1.Pod) bool { return hasVolume(p, "tok") }, inOrder(
	changes(func(p *corev1.Pod) { addVolume(p, token()) }),
	changesAppContainers(func(c *corev1.Container) { addMount(c, corev1.VolumeMount{Name: "tok", MountPath: "/tok"}) }),
))

// pathUnchecked mounts its volume at a path that the user may have used. The Pod is then invalid.
var pathUnchecked = inOrder(ensuresVolume(token()), changesAppContainers(func(c *corev1.Container) {
	if !mountsVolume(c, "tok") {
		addMount(c, corev1.VolumeMount{Name: "tok", MountPath: "/data"})
	}
}))

// pathChecked skips a container that has another mount at its path.
var pathChecked = inOrder(ensuresVolume(token()), changesContainers(func(c *corev1.Container) {
	// The only error is that the path is taken.
	_ = ensureMount(c, corev1.VolumeMount{Name: "tok", MountPath: "/data"})
}))

// dataMounted denies a Pod that has another mount at its path.
func dataMounted(_ *review.Request, p *corev1.Pod) error {
	return ensureMounted(p, token(), "/data")
}

// nameFromMetadata names its volume after the Pod. The name is missing in a create with generateName.
func nameFromMetadata(_ *review.Request, p *corev1.Pod) error {
	return ensureMounted(p, configVolume(p.Name+"-cfg", "agent-config"), "/cfg")
}

// configMounted gives its volume a fixed name.
func configMounted(_ *review.Request, p *corev1.Pod) error {
	return ensureMounted(p, configVolume("agent-cfg", "agent-config"), "/cfg")
}

// namespaceFromMetadata reads metadata.namespace, which may be missing in a create.
var namespaceFromMetadata = changes(func(p *corev1.Pod) {
	annotate(p, "agent/stage", stage(p.Namespace))
})

// namespaceFromRequest reads the namespace of the request, which is always set.
func namespaceFromRequest(r *review.Request, p *corev1.Pod) error {
	annotate(p, "agent/stage", stage(r.Namespace))
	return nil
}

func stage(namespace string) string {
	if namespace == "" {
		return "none"
	}
	return "stage-" + namespace
}
