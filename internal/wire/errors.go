// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"strconv"

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

// A pathError adds one name to the path of a fault while the decoder unwinds. Reading without a fault
// pays nothing for it.
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
