// SPDX-License-Identifier: Apache-2.0

// Package wire reads AdmissionReviews in one validating pass. It is the decoder of pkg/review, and of the hooks
// in pkg/webhook, which decode the object in the same pass and reuse the memory of a Request.
package wire

import (
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The kind and the API group of an AdmissionReview.
const (
	Group = "admission.k8s.io"
	Kind  = "AdmissionReview"

	V1      = "v1"
	V1beta1 = "v1beta1"
)

// A Target is where [Decode] writes what it reads: the fields of a review.Request.
type Target struct {
	Version                    *string
	Metadata                   *Metadata
	Object, OldObject, Options *[]byte
}

// Metadata is everything about a request except its documents. It converts to review.Metadata, which has
// the same fields.
type Metadata struct {
	UID                types.UID
	Kind               metav1.GroupVersionKind
	Resource           metav1.GroupVersionResource
	SubResource        string
	RequestKind        metav1.GroupVersionKind
	RequestResource    metav1.GroupVersionResource
	RequestSubResource string
	Name               string
	Namespace          string
	Operation          admissionv1.Operation
	UserInfo           authenticationv1.UserInfo
	DryRun             bool
}
