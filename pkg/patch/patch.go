// SPDX-License-Identifier: Apache-2.0

// Package patch makes, reads and applies JSON Patches (RFC 6902) as the API server understands
// them. It needs no cluster and no webhook.
//
//   - [Diff] carries what a program changed in a Go value over to the document that the value
//     was decoded from. The patch holds that change and nothing else: fields that the Go type
//     does not know stay where they are, in the list element that they belong to. A [Base]
//     decodes the document, too, and makes the same patch for less.
//   - [Documents] and [Values] compare documents that no Go type describes.
//   - [Apply] applies a patch, [Parse] reads one, [Patch.AppendJSON] writes it.
//   - A [Pointer] is a place in a document.
//
// # How differences are found
//
// The document is known by an outline: where the values are that the Go type has a place for.
// Decoding makes it on the way ([Base]), or a pass over the document does (base.go). Outline and
// Go value are gone through side by side, from the top down (typed.go and what begins with
// typed_). Where both agree, which is nearly everywhere, that copies nothing and decodes nothing,
// and members that no field stands for are not even seen. Where they differ it is known what the
// document has at that place, an object, a null, or nothing, and so which operation takes effect
// there. A list is compared index by index as long as nothing differs; then merge keys tell
// whether it is one element that was changed, or another one.
//
// What has no such simple order, lists without keys above all, is left to a second way of
// comparing: three documents, namely what was received, and what the value encodes to before
// and after. It serves Documents too, where the first two are one. Values become nodes
// (document.go), which are opened level by level, only where they differ (tree.go). Lists are
// matched element by element (align.go, lcs.go) and put in order by removals, moves and
// additions (list.go, places.go). Both take near-linear time.
//
// All functions are safe for concurrent use. Nothing they return shares memory with their
// arguments.
package patch

import (
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// Op is the kind of an [Operation]: one of the six of RFC 6902 section 4.
type Op string

// The operations of RFC 6902. [Diff] never makes a Copy or a Test.
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
	// From is the source of a Move or a Copy.
	From Pointer `json:"from,omitempty"`
	// Value is what an Add, a Replace or a Test carries.
	Value json.RawMessage `json:"value,omitempty"`
}

// A Patch is a list of operations that are applied in order. A nil or empty patch changes
// nothing.
type Patch []Operation

// AppendJSON appends the patch as a JSON array to dst. The bytes depend on the patch alone.
func (p Patch) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, op := range p {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"op":`...)
		dst = appendString(dst, string(op.Op))
		if op.Op == Move || op.Op == Copy {
			dst = append(dst, `,"from":`...)
			dst = appendString(dst, string(op.From))
		}
		dst = append(dst, `,"path":`...)
		dst = appendString(dst, string(op.Path))
		if op.Op == Add || op.Op == Replace || op.Op == Test {
			dst = append(dst, `,"value":`...)
			dst = appendValue(dst, op.Value)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// MarshalJSON implements json.Marshaler.
func (p Patch) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// appendValue writes null for a value that is not set: RFC 6902 wants the member there, and
// the API server reads a missing one as null.
func appendValue(dst []byte, value json.RawMessage) []byte {
	if len(value) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, value...)
}

// Parse reads a patch document. It refuses what no applier can carry out: a missing or
// unknown op, a missing path, pointers that are not RFC 6901, and anything that is not an
// array of objects. Names count with their case, and a JSON null is an empty patch, as for
// the API server.
func Parse(data []byte) (Patch, error) {
	var list []struct {
		Op    Op              `json:"op"`
		Path  *Pointer        `json:"path"`
		From  *Pointer        `json:"from"`
		Value json.RawMessage `json:"value"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return nil, fmt.Errorf("a JSON Patch is an array of operations: %w", err)
	}
	p := make(Patch, len(list))
	for i, op := range list {
		if err := check(op.Op, op.Path, op.From); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
		p[i] = Operation{Op: op.Op, Path: *op.Path}
		switch op.Op {
		case Move, Copy:
			p[i].From = *op.From
		case Add, Replace, Test:
			p[i].Value = appendValue(nil, op.Value)
		}
	}
	return p, nil
}

// Check returns what no applier can carry out in a patch, whatever the document: an unknown
// operation, a pointer that is not RFC 6901, a value that is not JSON.
func (p Patch) Check() error {
	for i, op := range p {
		err := check(op.Op, &op.Path, &op.From)
		if err == nil && len(op.Value) > 0 && !json.Valid(op.Value) {
			err = fmt.Errorf("the value of %s at %q is not JSON", op.Op, op.Path)
		}
		if err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return nil
}

func check(op Op, path, from *Pointer) error {
	switch op {
	case Move, Copy:
		if from == nil || !from.Valid() {
			return fmt.Errorf("%s needs a JSON pointer as its from", op)
		}
	case Add, Remove, Replace, Test:
	default:
		return fmt.Errorf("unknown op %q", op)
	}
	if path == nil || !path.Valid() {
		return fmt.Errorf("%s needs a JSON pointer as its path", op)
	}
	return nil
}

// appendString quotes s, which is valid UTF-8 or becomes so.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b == '"' || b == '\\' || b >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
