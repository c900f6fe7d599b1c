// SPDX-License-Identifier: Apache-2.0

package received

import (
	"errors"

	"github.com/admitkit/admitkit/internal/jsondiff"
	"github.com/admitkit/admitkit/pkg/patch"
)

// A Document decodes a value from a received JSON document, and later computes a patch from the document to a changed
// value. The zero value is ready for use. A Document is not safe for concurrent use.
type Document struct{ engine jsondiff.Original }

// Decode decodes the value at an offset of data into the zero value that into points to, see
// [jsondiff.Original.Decode]. An error about the document is a [*patch.Error].
func (d *Document) Decode(data []byte, offset, depth int, into any) (end int, err error) {
	end, err = d.engine.Decode(data, offset, depth, into)
	return end, located(err)
}

// Diff returns the patch that [patch.Diff] returns for the document and after. It fails if patch.Diff fails,
// if the last Decode failed, or if there was no Decode.
func (d *Document) Diff(after any) (patch.Patch, error) {
	ops, err := d.engine.Diff(after)
	if err != nil || len(ops) == 0 {
		return nil, located(err)
	}
	p := make(patch.Patch, len(ops))
	for i, op := range ops {
		p[i] = patch.Operation{Op: patch.Op(op.Op), Path: patch.Pointer(op.Path), From: patch.Pointer(op.From), Value: op.Value}
	}
	return p, nil
}

// Reset drops the document. It keeps the memory for the next document.
func (d *Document) Reset() { d.engine.Reset() }

func located(err error) error {
	if err == nil {
		return nil // without an allocation for e
	}
	var e *jsondiff.Error
	if errors.As(err, &e) {
		return &patch.Error{Pointer: patch.Pointer(e.Pointer), Err: e.Err}
	}
	return err
}
