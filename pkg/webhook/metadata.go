// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/pkg/review"
)

// objectMetadata is a projection with the metadata that IsDeleting, Controller and the labels of a ModeRequest come from.
type objectMetadata struct {
	Metadata struct {
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
		Labels            map[string]string       `json:"labels"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
}

// metadataOf returns the metadata of a document, or the zero value if the document is not an object with metadata. The
// API server sends such a document only on CONNECT, where the object is an options object.
func metadataOf(document []byte) (m objectMetadata) {
	if document == nil || decode.Unmarshal(document, &m) != nil {
		return objectMetadata{}
	}
	return m
}

// IsDeleting reports whether the stored object has a deletionTimestamp: it was deleted, and waits for its finalizers.
// IsDeleting reads the old object, because a client can write a deletionTimestamp into the new one. The API server
// rejects that, but only after the mutating webhooks (ValidateObjectMetaAccessorUpdate). IsDeleting is false on CREATE
// and CONNECT, and after the handler has returned. To admit every update of such objects, use
// [Hook.WithDeletingAdmitted].
func (r *Request[T]) IsDeleting() bool {
	defer r.docs.close()
	return isDeleting(r.Operation, r.docs.open().oldObject)
}

func isDeleting(operation admissionv1.Operation, oldObject []byte) bool {
	return (operation == admissionv1.Update || operation == admissionv1.Delete) && metadataOf(oldObject).Metadata.DeletionTimestamp != nil
}

// Controller returns the owner reference that has controller: true in the metadata of the API object, or nil if there
// is none. It reads the new object, and on DELETE the old one. A policy for Pods and workloads can skip objects whose
// controller it has checked already:
//
//	if owner := req.Controller(); owner != nil && owner.Kind == "ReplicaSet" { … }
//
// A user who may create the object can set any owner reference, and the API server does not check that the
// owner exists. So skip only work, such as a default that the owner's template already has. Never skip a check.
// Controller returns nil after the handler has returned.
func (r *Request[T]) Controller() *metav1.OwnerReference {
	docs := r.docs.open()
	defer r.docs.close()
	if r.Operation == admissionv1.Delete {
		return controllerIn(docs.oldObject)
	}
	return controllerIn(docs.object)
}

// controllerIn returns the owner reference with controller: true in a document, or nil.
func controllerIn(document []byte) *metav1.OwnerReference {
	for _, owner := range metadataOf(document).Metadata.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return &owner
		}
	}
	return nil
}

// WithDeletingAdmitted returns a hook that admits every UPDATE of an object that is being deleted, without calling its
// handler. Otherwise a policy that the stored object violates would keep a controller from removing its finalizer, and
// the object would stay forever. Such an update may change other fields as well. Do not use WithDeletingAdmitted where
// the other fields still matter: for example, a Pod runs until its grace period ends. Other operations still reach the
// handler. See [Request.IsDeleting].
func (h *Hook) WithDeletingAdmitted() *Hook {
	c := *h
	c.admitDeleting = true
	return &c
}

// admitsUnseen reports whether the hook admits a request without calling the handler.
func (h *Hook) admitsUnseen(wire *review.Request) bool {
	return h.admitDeleting && wire.Operation == admissionv1.Update && isDeleting(wire.Operation, wire.OldObject)
}
