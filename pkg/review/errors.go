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

// The causes of an [*Error]; test for them with errors.Is.
var (
	// ErrSyntax: the body is not one JSON document.
	ErrSyntax = wire.ErrSyntax
	// ErrShape: a member has another JSON type than the protocol says.
	ErrShape = wire.ErrShape
	// ErrNotReview: the document is not of kind AdmissionReview.
	ErrNotReview = wire.ErrNotReview
	// ErrVersion: an AdmissionReview of a version this package does not speak.
	ErrVersion = wire.ErrVersion
	// ErrNoRequest: an AdmissionReview without a request.
	ErrNoRequest = wire.ErrNoRequest
	// ErrNoUID: a request without a uid, so that no response can be matched to it.
	ErrNoUID = wire.ErrNoUID
)

// An Error says why a body is not an AdmissionReview that can be answered. It implements
// the APIStatus interface of k8s.io/apimachinery: a 400 that carries what is known of the
// review in its details.
type Error struct {
	// Version and UID are those of the review, as far as they could be read.
	Version Version
	UID     types.UID
	// Offset is the number of bytes before the fault, or of all bytes read when the fault has
	// no one place, as with a member that is missing.
	Offset int
	// Pointer is the place of the fault in the document.
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

// Status returns the error as the API's own error type.
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
