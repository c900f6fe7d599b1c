// SPDX-License-Identifier: Apache-2.0

// Package review implements the AdmissionReview protocol. [Decode] reads the API server's request.
// [AppendValidating] and [AppendMutating] write responses that it accepts.
//
// Both versions of the envelope, v1 and v1beta1, have the same fields (k8s.io/api/admission). A response has
// the version and the uid of its request. The package cannot build a response that the API server's
// VerifyAdmissionResponse refuses: only [AppendMutating] takes a patch, and it omits the patch of a
// denial. A [Decision] keeps its code, warnings and audit annotations within the API server's limits.
//
// The package does not depend on handlers, servers or clusters. Its functions are safe for concurrent
// use; a [Decision] is not.
package review

import (
	"bytes"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/internal/wire"
)

// Version is a version of the AdmissionReview envelope in the API group admission.k8s.io.
type Version string

// The versions that admissionReviewVersions of a webhook configuration can name.
const (
	V1      Version = wire.V1
	V1beta1 Version = wire.V1beta1
)

// APIVersion returns the apiVersion of the envelope, "admission.k8s.io/v1" for [V1].
func (v Version) APIVersion() string { return wire.Group + "/" + string(v) }

// Metadata is an AdmissionRequest without object, oldObject and options. The fields have the names and meanings of
// k8s.io/api/admission/v1.AdmissionRequest.
type Metadata struct {
	// UID identifies this call. The API server sends it again only when it replays the same
	// bytes after a Retry-After; a reinvocation has a new one.
	UID types.UID
	// Kind and Resource describe the form in which the object is sent, which is the one in the
	// matched rule.
	Kind     metav1.GroupVersionKind
	Resource metav1.GroupVersionResource
	// SubResource is the requested subresource, such as "scale", or empty.
	SubResource string
	// RequestKind and RequestResource describe the form that the API client used. They differ from
	// Kind and Resource if the API server converted the object (matchPolicy Equivalent). API servers
	// older than 1.15 do not send them. Decode then copies Kind, Resource and SubResource.
	RequestKind        metav1.GroupVersionKind
	RequestResource    metav1.GroupVersionResource
	RequestSubResource string
	// Name is empty on a create with generateName and for the items of a deletecollection.
	Name string
	// Namespace is empty for cluster-scoped objects; for a Namespace it is the name of that
	// Namespace.
	Namespace string
	Operation admissionv1.Operation
	UserInfo  authenticationv1.UserInfo
	// DryRun reports that the API server will not store the object, so side effects are forbidden.
	DryRun bool
}

// A Request is a decoded AdmissionReview. Object, OldObject and Options are sub-slices of the body given to
// Decode. They are nil if the body has null or no such member.
type Request struct {
	Version Version
	Metadata
	// Object is the new object: nil on DELETE. On CONNECT it is the options object.
	Object []byte
	// OldObject is the stored object: nil on CREATE and CONNECT.
	OldObject []byte
	// Options is a meta.k8s.io/v1 CreateOptions, UpdateOptions or DeleteOptions: nil on CONNECT.
	Options []byte
}

// Decode reads an AdmissionReview in one validating pass, as sigs.k8s.io/json does for the API server:
// unknown members are ignored, names are case-sensitive, null means absent, and the last of several members
// with one name wins (objects and lists merge).
//
// The documents of the request share memory with body, which must not change while they are in use.
// Nothing else in the Request shares memory with body. Every error is an [*Error] with the version and the
// uid, as far as they could be read.
func Decode(body []byte) (*Request, error) {
	req := new(Request)
	if err := wire.Decode(req.target(), body, nil); err != nil {
		return nil, located(err)
	}
	return req, nil
}

func (r *Request) target() wire.Target {
	return wire.Target{
		Version: (*string)(&r.Version), Metadata: (*wire.Metadata)(&r.Metadata),
		Object: &r.Object, OldObject: &r.OldObject, Options: &r.Options,
	}
}

// AdmissionRequest returns the request as the API type, with copies of the documents.
func (r *Request) AdmissionRequest() *admissionv1.AdmissionRequest {
	kind, resource, dryRun := r.RequestKind, r.RequestResource, r.DryRun
	return &admissionv1.AdmissionRequest{
		UID:                r.UID,
		Kind:               r.Kind,
		Resource:           r.Resource,
		SubResource:        r.SubResource,
		RequestKind:        &kind,
		RequestResource:    &resource,
		RequestSubResource: r.RequestSubResource,
		Name:               r.Name,
		Namespace:          r.Namespace,
		Operation:          r.Operation,
		UserInfo:           r.UserInfo,
		Object:             runtime.RawExtension{Raw: bytes.Clone(r.Object)},
		OldObject:          runtime.RawExtension{Raw: bytes.Clone(r.OldObject)},
		DryRun:             &dryRun,
		Options:            runtime.RawExtension{Raw: bytes.Clone(r.Options)},
	}
}
