// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// The causes of an [Error]. pkg/review documents them.
var (
	ErrSyntax    = errors.New("not JSON")
	ErrShape     = errors.New("wrong type")
	ErrNotReview = errors.New("not an AdmissionReview")
	ErrVersion   = errors.New("unknown AdmissionReview version")
	ErrNoRequest = errors.New("no request")
	ErrNoUID     = errors.New("no uid")
)

// An Error says why a body cannot be read. Its fields are those of review.Error.
type Error struct {
	Version string
	UID     types.UID
	Offset  int
	Path    []string // the names of the members down to the fault
	Err     error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A fault is an error at a member of a review. The decoder adds names to its path while it returns from nested objects,
// so a valid review costs nothing extra.
type fault struct {
	path   []string // the names of the members, the innermost first
	offset int      // of a value with the wrong type
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// within adds one name to the path of an error.
func within(name string, err error) error {
	if err == nil {
		return nil
	}
	f, ok := err.(*fault) //nolint:errorlint // a fault is never wrapped
	if !ok {
		f = &fault{err: err}
	}
	f.path = append(f.path, name)
	return f
}
