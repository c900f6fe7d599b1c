// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// Deny returns an error with which a handler denies the request: 403 Forbidden with this message.
// The user reads it after `admission webhook "<name>" denied the request: `. For other codes, return
// an error of k8s.io/apimachinery/pkg/api/errors, such as NewTooManyRequests, or use [DenyStatus].
func Deny(message string) error {
	return DenyStatus(metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
	})
}

// Denyf is [Deny] with a format.
func Denyf(format string, args ...any) error { return Deny(fmt.Sprintf(format, args...)) }

// DenyInvalid returns an error with which a handler denies an invalid object: 422 Invalid with one
// cause per field error, like the API server's own validation. It returns nil for an empty list, so a
// handler can end with "return webhook.DenyInvalid(errs)". Returning errs.ToAggregate() or a single
// *field.Error does the same. If the list contains a field.InternalError, the result is a failure to
// decide.
func DenyInvalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return errs.ToAggregate()
}

// DenyStatus returns an error with which a handler denies the request with this status. [review.Decision.Deny] fills in
// fields that are missing. A code of 500–599 denies too, even under failurePolicy Ignore. A returned API error with such
// a code is a failure to decide.
func DenyStatus(status metav1.Status) error { return &denial{status: status} }

type denial struct{ status metav1.Status }

func (d *denial) Error() string         { return d.status.Message }
func (d *denial) Status() metav1.Status { return d.status }

// denialOf returns the status of a denial. It returns false for a failure to decide.
func denialOf(err error, m *review.Metadata) (metav1.Status, bool) {
	var refused *denial
	if errors.As(err, &refused) {
		return reply.WithText(refused.status, err), true
	}
	if list, ok := fieldErrors(err); ok {
		gk := schema.GroupKind{Group: m.Kind.Group, Kind: m.Kind.Kind}
		return apierrors.NewInvalid(gk, m.Name, list).ErrStatus, true
	}
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		if status := api.Status(); status.Code >= 400 && status.Code < 500 {
			return reply.WithText(status, err), true
		}
	}
	return metav1.Status{}, false
}

// fieldErrors returns the field errors in err. It returns false if err contains other errors.
func fieldErrors(err error) (field.ErrorList, bool) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree of errors
	case nil:
		return nil, false
	case *field.Error: // an internal error is about the program, not about the object
		return field.ErrorList{e}, e != nil && e.Type != field.ErrorTypeInternal
	case interface{ Errors() []error }:
		return allFieldErrors(e.Errors())
	case interface{ Unwrap() []error }:
		return allFieldErrors(e.Unwrap())
	case interface{ Unwrap() error }:
		return fieldErrors(e.Unwrap())
	}
	return nil, false
}

func allFieldErrors(errs []error) (field.ErrorList, bool) {
	var all field.ErrorList
	for _, err := range errs {
		list, ok := fieldErrors(err)
		if !ok {
			return nil, false
		}
		all = append(all, list...)
	}
	return all, len(all) > 0
}
