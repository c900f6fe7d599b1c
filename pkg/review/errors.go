// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/internal/wire"
	"github.com/admitkit/admitkit/pkg/patch"
)

// The causes of an [*Error], for errors.Is.
var (
	// ErrSyntax: the body is not one JSON document.
	ErrSyntax = wire.ErrSyntax
	// ErrShape: a member has a JSON type that the protocol does not allow there.
	ErrShape = wire.ErrShape
	// ErrNotReview: the document is not of kind AdmissionReview.
	ErrNotReview = wire.ErrNotReview
	// ErrVersion: the AdmissionReview has a version that this package does not support.
	ErrVersion = wire.ErrVersion
	// ErrNoRequest: the AdmissionReview has no request.
	ErrNoRequest = wire.ErrNoRequest
	// ErrNoUID: the request has no uid, so no response can be matched to it.
	ErrNoUID = wire.ErrNoUID
)

// An Error says why a body is not an AdmissionReview that can be answered. It implements the APIStatus
// interface of k8s.io/apimachinery with code 400 and the known parts of the review in its details.
type Error struct {
	// Version and UID are the review's, as far as they could be read.
	Version Version
	UID     types.UID
	// Offset is the number of bytes before the fault. If a member is missing, it is the number of all
	// bytes.
	Offset int
	// Pointer is where in the document the fault is.
	Pointer patch.Pointer
	// Err wraps one of the Err… causes.
	Err error
}

func (e *Error) Error() string {
	text := "cannot read the AdmissionReview: "
	if e.Pointer != "" {
		text += e.Pointer.FieldPath() + ": "
	}
	text += e.Err.Error()
	if errors.Is(e.Err, ErrSyntax) || errors.Is(e.Err, ErrShape) {
		text += " at byte " + strconv.Itoa(e.Offset)
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Status returns the error as an API status with code 400.
func (e *Error) Status() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     http.StatusBadRequest,
		Reason:   metav1.StatusReasonBadRequest,
		Message:  e.Error(),
		Details: &metav1.StatusDetails{
			Group: wire.Group,
			Kind:  wire.Kind,
			UID:   e.UID,
			Causes: []metav1.StatusCause{{
				Type: metav1.CauseTypeFieldValueInvalid, Field: e.Pointer.FieldPath(), Message: e.Err.Error(),
			}},
		},
	}
}

// located returns the decoder's error as an [*Error].
func located(err error) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	at := patch.Pointer("")
	for _, name := range e.Path {
		at = at.Append(name)
	}
	return &Error{Version: Version(e.Version), UID: e.UID, Offset: e.Offset, Pointer: at, Err: e.Err}
}
