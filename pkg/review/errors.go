// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/patch"
)

// The causes of an [*Error]; test for them with errors.Is.
var (
	// ErrSyntax: the body is not one JSON document.
	ErrSyntax = errors.New("not JSON")
	// ErrShape: a member has another JSON type than the protocol says.
	ErrShape = errors.New("wrong type")
	// ErrNotReview: the document is not of kind AdmissionReview.
	ErrNotReview = errors.New("not an AdmissionReview")
	// ErrVersion: an AdmissionReview of a version this package does not speak.
	ErrVersion = errors.New("unknown AdmissionReview version")
	// ErrNoRequest: an AdmissionReview without a request.
	ErrNoRequest = errors.New("no request")
	// ErrNoUID: a request without a uid, so that no response can be matched to it.
	ErrNoUID = errors.New("no uid")
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
			Group: group,
			Kind:  reviewKind,
			UID:   e.UID,
			Causes: []metav1.StatusCause{{
				Type: metav1.CauseTypeFieldValueInvalid, Field: e.Pointer.FieldPath(), Message: e.Err.Error(),
			}},
		},
	}
}

// A pathError records one step of the place while a failure unwinds, so that the good path
// pays nothing for places.
type pathError struct {
	name string
	err  error
}

func (e *pathError) Error() string { return fmt.Sprintf("%s: %v", e.name, e.err) }
func (e *pathError) Unwrap() error { return e.err }

func within(name string, err error) error {
	if err == nil {
		return nil
	}
	return &pathError{name: name, err: err}
}

func withinIndex(i int, err error) error {
	if err == nil {
		return nil
	}
	return within(strconv.Itoa(i), err)
}

type shapeError struct {
	offset int
	text   string
}

func (e *shapeError) Error() string { return e.text }
