// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"

	"github.com/admitkit/admitkit/internal/jsondiff"
)

// ErrDuplicateName is the cause of an [Error] about an object that holds one name twice. Libraries that apply
// patches see only the last such member, and decoders may merge them, so no patch is certain to mean the same
// to both. The API server never sends such objects.
//
// [Documents] and [Values] return it for any such object. [Diff] returns it in three cases: for the name of a struct's
// field, whether or not the field changed; for any name of an object that is compared with a map that changed; and for
// any name of an object that is compared as a document. Diff compares changed list elements as documents, and also
// values of types that encode themselves. Duplicate names are accepted among other members that the Go type does not
// know, and inside a value that is removed or replaced as a whole.
var ErrDuplicateName = jsondiff.ErrDuplicateName

// ErrAlike is the cause of an [Error] about a list that lost one of several elements. The Go type sees no difference
// between these elements, but the document does, so it is not known which one was removed. A Go type with the field
// that identifies the elements avoids the error.
var ErrAlike = jsondiff.ErrAlike

// An Error is an error at a place in a document: the document cannot be compared there, or a patch cannot be applied
// there.
type Error struct {
	// Pointer is the place in the document.
	Pointer Pointer
	// Err is the cause: [ErrDuplicateName], [ErrAlike], a syntax error, or why a patch failed.
	Err error
}

func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Pointer.FieldPath(), e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// converted returns an error of package jsondiff as an [*Error], and any other error as it is.
func converted(err error) error {
	if err == nil {
		return nil // before located is allocated
	}
	var located *jsondiff.Error
	if errors.As(err, &located) {
		return &Error{Pointer: Pointer(located.Pointer), Err: located.Err}
	}
	return err
}
