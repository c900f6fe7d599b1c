// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// P18: webhooks that treat an UPDATE like a CREATE.

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

func updatePatterns() []Case {
	return append(lifecyclePatterns(),
		onPods("P18 patches an immutable field on UPDATE", sidecarIfAbsent).on(create, update).breaks("L6"),
		onPods("P18 mounts a volume on UPDATE", tokenMounted).on(create, update).breaks("L6"),
		onPods("P18 puts its finalizer back while the object is deleted", finalizer).on(create, update).breaks("L6"),
		onPods("P18 counts the updates", countsUpdates).on(create, update).breaks("L6"),
	)
}

func updateLookalikes() []Case {
	return append(lifecycleLookalikes(),
		onPods("P18 acts on CREATE only", onCreate(sidecarIfAbsent)).on(create, update),
		onPods("P18 patches metadata on UPDATE", annotatedStatus).on(create, update),
		onDeployments("P18 changes the template on UPDATE", sidecarIfAbsent),
		onPods("P18 adds its finalizer on CREATE, but not during deletion", unless(deleted, onCreate(finalizer))).on(create, update),
		onPods("N6 metadata on UPDATE of a Pod", labelled).on(create, update),
		onDeployments("N6 template on UPDATE of a Deployment", tokenMounted),
		onPods("N9 CREATE only, never reads the operation", sidecarIfAbsent),
	)
}

func onCreate(e edit) edit { return onOperation(admissionv1.Create, e) }

func onUpdate(e edit) edit { return onOperation(admissionv1.Update, e) }

// onOperation returns an edit that applies e only to requests with this operation.
func onOperation(want admissionv1.Operation, e edit) edit {
	return func(r *review.Request, p *corev1.Pod) error {
		if r.Operation != want {
			return nil
		}
		return e(r, p)
	}
}

// deleted reports whether the deletion of the Pod has begun.
func deleted(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }

const ownFinalizer = "bugs.example.com/agent"

// finalizer adds its finalizer whenever it is missing. During deletion it puts the finalizer back, so
// the deletion never ends.
var finalizer = changes(func(p *corev1.Pod) {
	if !slices.Contains(p.Finalizers, ownFinalizer) {
		p.Finalizers = append(p.Finalizers, ownFinalizer)
	}
})

// countsUpdates counts the updates in an annotation. So the object changes even if a user applies the same manifest
// again.
func countsUpdates(r *review.Request, p *corev1.Pod) error {
	if r.Operation == admissionv1.Update {
		n, _ := strconv.Atoi(p.Annotations["agent/updates"])
		annotate(p, "agent/updates", strconv.Itoa(n+1))
	}
	return nil
}

// annotatedStatus sets one annotation to a constant, which is valid in updates.
var annotatedStatus = changes(func(p *corev1.Pod) {
	annotate(p, injected, "injected")
})

// labelled sets one label to a constant, which is valid in updates.
var labelled = changes(func(p *corev1.Pod) {
	setKey(&p.Labels, "bugs.example.com/seen", "yes")
})
