// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A Request is one call of a hook with the object decoded into T: a built-in type, the Go
// struct of a custom resource, unstructured.Unstructured, or a projection, which is any
// struct with json tags that names only the fields the handler needs. What T does not name
// is neither decoded nor lost.
//
// It is valid during the call and not safe for concurrent use. What is decoded may be kept, and
// never changes; documents that are not decoded by the time the handler returns are gone. A
// handler that is left behind at its deadline keeps them. A Request that a test makes
// itself, with Object and Metadata set, works too: it has no old object and no options. To see
// what the API server gets, call the hook with package webhooktest.
type Request[T any] struct {
	// Metadata holds the rest of the AdmissionRequest: UID, Kind, Operation, UserInfo, DryRun…
	review.Metadata
	// Object is the new object, nil on DELETE. A mutating handler changes it in place; on
	// CONNECT it is the options object, such as PodExecOptions.
	Object *T

	docs        *documents
	decision    review.Decision
	sideEffects bool
	old         *T
	oldErr      error
	oldDecoded  bool
}

// OldObject returns the stored object, decoded on first use, or nil where the operation has
// none (CREATE, CONNECT). On UPDATE and DELETE it is never nil without an error, which says
// that the API server sent none or where it does not fit T; return it to fail the call. The
// first use must be before the handler returns.
func (r *Request[T]) OldObject() (*T, error) {
	docs := r.docs.open()
	defer r.docs.close()
	if r.oldDecoded {
		return r.old, r.oldErr
	}
	if err := r.docs.gone(); err != nil {
		return nil, err
	}
	r.old, r.oldErr = decodeObject[T](docs.oldObject, "oldObject")
	if docs.oldObject == nil && (r.Operation == admissionv1.Update || r.Operation == admissionv1.Delete) {
		r.oldErr = reply.BadRequest("the request is a %s without an old object", r.Operation)
	}
	r.oldDecoded = true
	return r.old, r.oldErr
}

// DecodeOptions decodes the options of the API request into a *metav1.CreateOptions,
// *metav1.UpdateOptions or *metav1.DeleteOptions, as Operation says; patch and apply arrive
// as updates or creates. CONNECT has no options: into is left as it is. It fails once the
// handler has returned.
func (r *Request[T]) DecodeOptions(into any) error {
	docs := r.docs.open()
	defer r.docs.close()
	if docs.options == nil {
		return r.docs.gone()
	}
	return decodeInto(docs.options, into, "options")
}

// UnknownFields lists the field paths of the object that T has no field for, such as
// "spec.containers[0].newField", up to 100 of them. With a built-in type these are fields of
// a newer Kubernetes version; with a projection, all that it leaves out. It reads the object
// again. [Hook.WithUnknownFields] has the hook look for them in every call.
func (r *Request[T]) UnknownFields() []string {
	defer r.docs.close()
	return unknownFields[T](r.docs.open().object)
}

// Warn adds a warning that kubectl shows to the user, whether the call admits or denies. See
// [review.Decision.Warn] for how it is made safe to send.
func (r *Request[T]) Warn(text string) { r.decision.Warn(text) }

// Warnf is [Request.Warn] with a format.
func (r *Request[T]) Warnf(format string, args ...any) { r.Warn(fmt.Sprintf(format, args...)) }

// Audit adds an annotation to the API server's audit event, stored as "<hook name>/<key>".
// A key that the API server would drop (see [review.Decision.Audit]) is an error: nothing is
// added.
func (r *Request[T]) Audit(key, value string) error { return r.decision.Audit(key, value) }

// SideEffect runs do, unless the call is a dry run, and returns its error. It is the place
// for everything that reaches beyond the object. The registration must say so: unless its
// sideEffects is NoneOnDryRun, do does not run and the error tells the fix.
func (r *Request[T]) SideEffect(do func() error) error {
	if !r.sideEffects {
		return errors.New("the hook has a side effect but its registration says sideEffects: None; set it to NoneOnDryRun")
	}
	if r.DryRun {
		return nil
	}
	return do()
}

// RawObject returns a copy of the object's JSON as received, or nil: also when the handler has
// returned.
func (r *Request[T]) RawObject() []byte {
	defer r.docs.close()
	return bytes.Clone(r.docs.open().object)
}

// RawOldObject returns a copy of the old object's JSON as received, or nil.
func (r *Request[T]) RawOldObject() []byte {
	defer r.docs.close()
	return bytes.Clone(r.docs.open().oldObject)
}

// AdmissionRequest returns the whole request as the API type, with copies of the documents
// as received.
func (r *Request[T]) AdmissionRequest() *admissionv1.AdmissionRequest {
	docs := r.docs.open()
	defer r.docs.close()
	wire := review.Request{Metadata: r.Metadata, Object: docs.object, OldObject: docs.oldObject, Options: docs.options}
	return wire.AdmissionRequest()
}

// decide turns what a handler returned into the decision, or into the failure to decide.
func (r *Request[T]) decide(err error) (*review.Decision, error) {
	if err == nil {
		return &r.decision, nil
	}
	status, ok := denialOf(err, &r.Metadata)
	if !ok {
		return nil, err
	}
	r.decision.Deny(status)
	return &r.decision, nil
}
