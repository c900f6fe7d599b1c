// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"reflect"
	"sync"

	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// Diff compares raw, a JSON document, with the Go value after, by the rules in the documentation of patch.Diff. It
// returns the operations as converted by convert, which must not keep the slice that it gets. Every error about raw is
// an [*Error].
func Diff[P any](raw []byte, after any, convert func([]Operation) P) (p P, err error) {
	o := originals.Get().(*Original)
	o.raw, o.shape = raw, nil
	ops, err := o.diff(after)
	if err == nil {
		p = convert(ops)
	}
	o.Reset()
	if cap(o.outline) <= mostPooledParts {
		originals.Put(o)
	}
	return p, err
}

var originals = sync.Pool{New: func() any { return new(Original) }}

// mostPooledParts bounds the size of the decode.Outline that a pooled [Original] keeps after a large document.
const mostPooledParts = 1 << 15

// A Document is a JSON document that no Go type describes.
type Document struct{ root *node }

// Parse reads a document. It fails with an [*Error] if doc is not one JSON value or has a duplicate name.
func Parse(doc []byte) (Document, error) {
	root, err := parse(doc)
	return Document{root}, err
}

// Documents compares two documents, by the rules in the documentation of patch.Documents. Every error is an [*Error].
func Documents(before, after Document) ([]Operation, error) {
	d := differ{untyped: true}
	d.value("", before.root, after.root, before.root, shape{})
	return d.result()
}

// Encode encodes a Go value as a document. Equal values give equal bytes.
func Encode(v any) ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	return encodeValue(reflect.ValueOf(v))
}

// CheckSyntax returns an [*Error] if doc is not one JSON value.
func CheckSyntax(doc []byte) error {
	c := jsonraw.At(doc, 0, 0)
	if len(c.Rest()) == 0 {
		return &Error{Err: errEmpty}
	}
	var o Original
	if err := o.outline.Scan(doc, shapes.Of(reflect.TypeFor[any]())); err != nil {
		return unreadable(err)
	}
	return nil
}
