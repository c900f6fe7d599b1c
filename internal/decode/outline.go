// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"slices"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/shape"
)

// An Outline records the positions of values in a document, so that a comparison need not read the document again. It
// has one Part for each value that has a field in the Go type, in the order of the document. The parts inside a value
// follow the part of the value.
type Outline []Part

// A Part is one value of a document.
type Part struct {
	// Start and End are the offsets of the value's first byte and of the byte after it.
	Start, End int32
	// Next is the index of the first part that comes after this value and the values inside it.
	Next int32
	// At identifies the value in its parent: in a struct, the index in the shape's Fields; in a map, the
	// offset of the member's name.
	At   int32
	Kind jsonraw.Kind
	// Plain reports that a string has no escapes. It may be false for such a string if the shape is neither
	// String nor Any.
	Plain bool
}

// ErrRepeated is the cause of an [Error] about an object that has two members for one field of a struct.
var ErrRepeated = errors.New("an object has a duplicate field")

// Scan records the outline of raw, one whole document, and reuses the memory of o. It fails with an [*Error] if raw is
// not JSON or has a duplicate member. The cause for a duplicate member is [ErrRepeated]. It does not check whether the
// values fit the type.
func (o *Outline) Scan(raw []byte, s *shape.Shape) error {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.c.Seek(raw, 0, 0)
	d.outlines, d.parts, d.base = true, (*o)[:0], 0
	err := d.scan(s)
	*o = d.parts
	if err == nil {
		err = misplaced(d.c.End(), d.c.Offset())
	}
	return reversePath(err)
}

// reversePath reverses the path of an [*Error], to which within has added the innermost step first.
func reversePath(err error) error {
	if err == nil {
		return nil
	}
	var fault *Error
	if errors.As(err, &fault) {
		slices.Reverse(fault.Path)
	}
	return err
}

// misplaced returns err as an [*Error] at the offset, or nil if err is nil.
func misplaced(err error, offset int) error {
	if err == nil {
		return nil
	}
	return &Error{Offset: offset, Err: err}
}

// scan records the next value, which has the given shape.
func (d *decoder) scan(s *shape.Shape) (err error) {
	for s.Kind == shape.Pointer && s.Elem != s {
		s = s.Elem
	}
	kind := d.c.Kind()
	part := d.begin(kind)
	switch {
	case kind == jsonraw.Object && s.Kind == shape.Struct:
		err = d.scanFields(s)
	case kind == jsonraw.Object && s.Kind == shape.Map:
		err = d.scanEntries(s.Elem)
	case kind == jsonraw.Object && s.Kind == shape.Any:
		err = d.scanEntries(s)
	case kind == jsonraw.Array && s.Kind == shape.List:
		err = d.scanElements(s.Elem)
	case kind == jsonraw.Array && s.Kind == shape.Any:
		err = d.scanElements(s)
	case kind == jsonraw.String && (s.Kind == shape.String || s.Kind == shape.Any):
		_, d.plain, err = d.c.Text()
		err = misplaced(err, d.c.Offset())
	default:
		err = misplaced(d.c.Skip(), d.c.Offset())
	}
	d.end(part)
	return err
}

func (d *decoder) scanFields(s *shape.Shape) error {
	var seen shape.FieldSet
	more, err := d.c.OpenObject()
	for i := -1; more && err == nil; {
		if i, more, err = s.Next(&d.c, i+1); !more || err != nil {
			break
		}
		name := s.Fields[i].Name
		if !seen.Add(i, s) {
			return at(name, misplaced(ErrRepeated, d.c.Offset()))
		}
		d.where = i
		if err := d.scan(s.Fields[i].Shape); err != nil {
			return at(name, err)
		}
		more, err = d.c.NextMember()
	}
	return misplaced(err, d.c.Offset())
}

func (d *decoder) scanEntries(elem *shape.Shape) error {
	more, err := d.c.OpenObject()
	for more && err == nil {
		var name []byte
		if name, err = d.entry(); err != nil {
			break
		}
		if err := d.scan(elem); err != nil {
			return at(string(name), err)
		}
		more, err = d.c.NextMember()
	}
	return misplaced(err, d.c.Offset())
}

func (d *decoder) scanElements(elem *shape.Shape) error {
	more, err := d.c.OpenArray()
	for i := 0; more && err == nil; i++ {
		if err := d.scan(elem); err != nil {
			return atIndex(i, err)
		}
		more, err = d.c.NextElement()
	}
	return misplaced(err, d.c.Offset())
}

// entry reads the name of a map's next member.
func (d *decoder) entry() ([]byte, error) {
	_ = d.c.Rest() // skips white space before the name
	d.where = d.c.Offset() - d.base
	return d.c.Name()
}

// begin adds a part for the next value, which has the given kind, and returns the index of the part.
func (d *decoder) begin(kind jsonraw.Kind) (part int) {
	if !d.outlines {
		return 0
	}
	d.parts = append(d.parts, Part{Start: int32(d.c.Offset() - d.base), At: int32(d.where), Kind: kind})
	d.plain, d.where = false, 0
	return len(d.parts) - 1
}

// end completes a part after its value was read.
func (d *decoder) end(part int) {
	if !d.outlines {
		return
	}
	p := &d.parts[part]
	p.End, p.Next = int32(d.c.Offset()-d.base), int32(len(d.parts))
	p.Plain = d.plain && p.Kind == jsonraw.String
}
