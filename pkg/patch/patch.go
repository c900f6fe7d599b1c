// SPDX-License-Identifier: Apache-2.0

// Package patch computes, reads and applies JSON Patches (RFC 6902) as the API server understands
// them. It needs no cluster and no webhook.
//
//   - [Diff] returns the patch for the changes that a program made to a Go value. The patch holds these
//     changes and nothing else: fields that the Go type does not know stay where they are, in the list
//     element that they belong to.
//   - [Documents] compares two documents without a Go type. [Values] does so with the encodings of two Go values.
//   - [Apply] applies a patch, [Parse] reads one, [Patch.AppendJSON] writes it.
//   - A [Pointer] is a place in a document.
//
// Diff walks the document and the Go value side by side. It is cheap if little changed, and takes
// near-linear time otherwise. Its comment states the rules.
//
// All functions are safe for concurrent use. Nothing they return shares memory with their
// arguments.
package patch

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
)

// Op is the kind of an [Operation], one of the six in RFC 6902 section 4.
type Op string

// The operations of RFC 6902. Patches from [Diff] have no Copy and no Test.
const (
	Add     Op = "add"
	Remove  Op = "remove"
	Replace Op = "replace"
	Move    Op = "move"
	Copy    Op = "copy"
	Test    Op = "test"
)

// An Operation is one step of a [Patch].
type Operation struct {
	Op   Op      `json:"op"`
	Path Pointer `json:"path"`
	// From is the source of a Move or a Copy. It must not be the whole document, "".
	From Pointer `json:"from,omitempty"`
	// Value is the value of an Add, a Replace or a Test, which RFC 6902 requires. null is
	// json.RawMessage("null"); nil is a missing value and fails Check.
	Value json.RawMessage `json:"value,omitempty"`
}

// A Patch is a list of operations that are applied in order. A nil or empty patch changes
// nothing.
type Patch []Operation

// AppendJSON appends the patch as a JSON array to dst. The bytes depend on the patch alone. They are a valid patch only
// if [Patch.Check] passes.
func (p Patch) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, op := range p {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"op":`...)
		dst = jsonraw.AppendString(dst, string(op.Op))
		if op.takesFrom() {
			dst = append(dst, `,"from":`...)
			dst = jsonraw.AppendString(dst, string(op.From))
		}
		dst = append(dst, `,"path":`...)
		dst = jsonraw.AppendString(dst, string(op.Path))
		if op.takesValue() && len(op.Value) > 0 {
			dst = append(dst, `,"value":`...)
			dst = append(dst, op.Value...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// MarshalJSON implements json.Marshaler. It fails if [Patch.Check] does.
func (p Patch) MarshalJSON() ([]byte, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p.AppendJSON(nil), nil
}

// Parse reads a patch document as the API server does: names are case-sensitive, and a JSON null is an empty patch. It
// fails if the document is not an array of objects, or if an operation has an unknown op, no path, an invalid
// pointer, or no value although it needs one.
func Parse(data []byte) (Patch, error) {
	c := jsonraw.At(data, 0, 0)
	if kind := c.Kind(); kind != jsonraw.Array && kind != jsonraw.Null && kind != jsonraw.Invalid {
		return nil, fmt.Errorf("want a list of operations, got %s", kind.Noun())
	}
	var list []written
	if err := decode.Unmarshal(data, &list); err != nil {
		return nil, notOperations(err)
	}
	p := make(Patch, len(list))
	for i, op := range list {
		var err error
		if p[i], err = op.operation(); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return p, nil
}

// written is an operation as it was read. Unlike Operation, it distinguishes a missing path from an empty one.
type written struct {
	Op    Op              `json:"op"`
	Path  *Pointer        `json:"path"`
	From  Pointer         `json:"from"`
	Value json.RawMessage `json:"value"`
}

// operation returns the operation without the members that its kind ignores.
func (w *written) operation() (Operation, error) {
	op := Operation{Op: w.Op}
	if op.takesFrom() {
		op.From = w.From
	}
	if op.takesValue() {
		op.Value = w.Value
	}
	if w.Path == nil && op.known() {
		return op, fmt.Errorf("%s needs a path", op.Op)
	}
	if w.Path != nil {
		op.Path = *w.Path
	}
	return op, op.check()
}

// notOperations returns the error for a document that is not a list of operations.
func notOperations(err error) error {
	var fault *decode.Error
	if !errors.As(err, &fault) || len(fault.Path) == 0 {
		return fmt.Errorf("want a list of operations: %w", err)
	}
	if at := Pointer(decode.Pointer(fault.Path[1:])); at != "" {
		err = fmt.Errorf("%s: %w", at.FieldPath(), fault.Err)
	}
	return fmt.Errorf("operation %d: %w", fault.Path[0].Index, err)
}

// Check returns an error if there is no document to which the API server can apply the patch. The cause is an unknown
// operation, an invalid pointer, a missing source, or a value that is missing or not JSON.
func (p Patch) Check() error {
	for i := range p {
		if err := p[i].check(); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return nil
}

func (op *Operation) check() error {
	switch {
	case !op.known():
		return fmt.Errorf("unknown op %q", op.Op)
	case !op.Path.Valid():
		return fmt.Errorf("%s needs a JSON pointer as its path, not %q", op.Op, op.Path)
	case op.takesFrom() && op.From == "":
		return fmt.Errorf("%s needs a from, which cannot be the whole document", op.Op)
	case op.takesFrom() && !op.From.Valid():
		return fmt.Errorf("%s needs a JSON pointer as its from, not %q", op.Op, op.From)
	case op.takesValue() && len(op.Value) == 0:
		return fmt.Errorf("%s needs a value at %q: to mean null, write null", op.Op, op.Path)
	case len(op.Value) > 0 && !json.Valid(op.Value):
		return fmt.Errorf("the value of %s at %q is not JSON", op.Op, op.Path)
	}
	return nil
}

func (op *Operation) known() bool { return op.takesFrom() || op.takesValue() || op.Op == Remove }

func (op *Operation) takesFrom() bool { return op.Op == Move || op.Op == Copy }

func (op *Operation) takesValue() bool { return op.Op == Add || op.Op == Replace || op.Op == Test }
