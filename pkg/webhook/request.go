// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/object"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A Request is one call of a hook with the object decoded into T: a built-in type, the Go struct of
// a custom resource, unstructured.Unstructured, or a projection. A projection is a struct with json
// tags for only the fields that the handler needs. Other fields are neither decoded nor lost.
//
// A Request is valid during the call and not safe for concurrent use. Decoded objects may be kept and never change.
// Documents that the handler has not decoded are gone when the handler returns, unless the call was answered at its
// deadline while the handler was still running. A test can also create a Request with Object and Metadata. Such a
// Request has no old object and no options. To see what the API server gets, call the hook with package webhooktest.
type Request[T any] struct {
	// Metadata holds the rest of the AdmissionRequest: UID, Kind, Operation, UserInfo, DryRun…
	review.Metadata
	// Object is the new object, nil on DELETE. On CONNECT it is the options object, such as
	// PodExecOptions. A mutating handler changes it in place.
	Object *T

	docs        *documents
	decision    review.Decision
	sideEffects bool
	timeout     time.Duration // 0 if the API server sent none
	view        *view         // nil if T holds the whole object
	old         *T
	oldErr      error
	oldDecoded  bool
}

// OldObject returns the stored object, decoded on first use, or nil on CREATE and CONNECT. On
// UPDATE and DELETE it returns an error if the API server sent no old object, or if the old object
// does not fit T. Return that error to fail the call. The first use must be before the handler
// returns.
func (r *Request[T]) OldObject() (*T, error) {
	docs := r.docs.open()
	defer r.docs.close()
	if r.oldDecoded {
		return r.old, r.oldErr
	}
	if err := r.docs.gone(); err != nil {
		return nil, err
	}
	r.old, r.oldErr = decodeOld[T](docs.oldObject, r.view)
	if docs.oldObject == nil && (r.Operation == admissionv1.Update || r.Operation == admissionv1.Delete) {
		r.oldErr = reply.BadRequest("the request is a %s without an old object", r.Operation)
	}
	r.oldDecoded = true
	return r.old, r.oldErr
}

func decodeOld[T any](document []byte, v *view) (*T, error) {
	if document == nil || !v.isPart() {
		return object.Decode[T](document, "oldObject", "")
	}
	part := object.Part(document, v.path)
	if part == nil {
		return nil, v.missing("oldObject")
	}
	return object.Decode[T](part, "oldObject", v.pointer())
}

// ObjectOrOld returns the old object on DELETE, and Object for any other operation. So one handler can
// check writes and deletions. It returns an object or an error: for the errors on DELETE, see
// [Request.OldObject]. A mutating handler can change the object that it returns, except on DELETE.
func (r *Request[T]) ObjectOrOld() (*T, error) {
	if r.Operation == admissionv1.Delete {
		return r.OldObject()
	}
	if r.Object == nil {
		return nil, reply.BadRequest("the request is a %s without an object", r.Operation)
	}
	return r.Object, nil
}

// Timeout returns the parameter timeout of the call and true, or zero and false if the API server
// sent no valid one. The API server rounds the remaining time up to a whole second and counts the
// network's time against it (callAttrMutatingHook). The deadline of the handler's context is earlier,
// so that the answer arrives in time. Use the context to limit work.
func (r *Request[T]) Timeout() (time.Duration, bool) { return r.timeout, r.timeout > 0 }

// DecodeOptions decodes the options of the API request into a *metav1.CreateOptions, *metav1.UpdateOptions or
// *metav1.DeleteOptions, depending on Operation. Patch and apply arrive as updates or creates. On CONNECT it returns an
// error: the API server sends options such as PodExecOptions as the object (ConnectResource). If another operation has
// no options, DecodeOptions leaves the value of into unchanged. It returns an error after the handler has returned.
func (r *Request[T]) DecodeOptions(into any) error {
	docs := r.docs.open()
	defer r.docs.close()
	if err := r.docs.gone(); err != nil {
		return err
	}
	if r.Operation == admissionv1.Connect {
		return errors.New("a CONNECT request has no separate options: the API server sends them as the object, so read Object")
	}
	if docs.options == nil {
		return nil
	}
	return object.DecodeInto(docs.options, into, "options")
}

// UnknownFields returns the paths of at most 100 fields of the object that T does not have, such as
// "spec.containers[0].newField". With a built-in type these are fields of a newer Kubernetes version. With a projection
// they are all fields that the projection omits. UnknownFields reads the object again. [Hook.WithUnknownFields] makes
// this check in every call.
func (r *Request[T]) UnknownFields() []string {
	defer r.docs.close()
	return r.unknownFields(r.docs.open().object)
}

func (r *Request[T]) unknownFields(document []byte) []string {
	switch {
	case document == nil:
		return nil
	case r.view == nil:
		return object.UnknownFields[T](document, "")
	case r.view.unknown != nil:
		return r.view.unknown(document)
	}
	return object.UnknownFields[T](object.Part(document, r.view.path), r.view.pointer())
}

// Warn adds a warning that kubectl shows to the user, whether the call is admitted or denied.
// [review.Decision.Warn] says how the text is made safe to send.
func (r *Request[T]) Warn(text string) { r.decision.Warn(text) }

// Warnf is [Request.Warn] with a format.
func (r *Request[T]) Warnf(format string, args ...any) { r.Warn(fmt.Sprintf(format, args...)) }

// Audit adds an annotation to the audit event of the API server, stored as "<hook name>/<key>". If
// the API server would drop the key (see [review.Decision.Audit]), Audit adds nothing and returns
// an error.
func (r *Request[T]) Audit(key, value string) error { return r.decision.Audit(key, value) }

// SideEffect calls the function do, unless the request is a dry run, and returns the error of do. Use it for all
// changes outside of the object. The sideEffects of the registration must be NoneOnDryRun: otherwise SideEffect does
// not call do and returns an error.
func (r *Request[T]) SideEffect(do func() error) error {
	if !r.sideEffects {
		return errors.New("the hook has a side effect but its registration says sideEffects: None; set it to NoneOnDryRun")
	}
	if r.DryRun {
		return nil
	}
	return do()
}

// RawObject returns a copy of the object's JSON as received. It returns nil if there is none or the
// handler has returned.
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

// decide turns the error of a handler into a decision or a failure to decide.
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

// documents are the JSON documents of a Request as received, nil where the review has none. Copies
// of a Request share them. They lie in memory that is reused after the call, so end removes them.
type documents struct {
	mu                         sync.Mutex
	object, oldObject, options []byte
	over                       bool
}

func (d *documents) begin(wire *review.Request) {
	d.object, d.oldObject, d.options = wire.Object, wire.OldObject, wire.Options
}

// open locks the documents until close is called. A Request that a test created has none.
func (d *documents) open() *documents {
	if d == nil {
		return &documents{}
	}
	d.mu.Lock()
	return d
}

func (d *documents) close() {
	if d != nil {
		d.mu.Unlock()
	}
}

// end removes the documents.
func (d *documents) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.object, d.oldObject, d.options, d.over = nil, nil, nil, true
}

// gone returns an error after end. It must be called between open and close.
func (d *documents) gone() error {
	if d != nil && d.over {
		return errors.New("the handler has returned: decode the old object and the options before it returns")
	}
	return nil
}
