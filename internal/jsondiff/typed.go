// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"reflect"
	"strconv"
	"sync"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// How differences are found.
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

// A walker compares a document with a Go value, both from the top down in one go. It knows the
// document by its outline: whenever a method is called with a Go value, the part to compare it
// with is the next one, and when the method returns the part is behind it. A method writes the
// operations that turn one into the other.
//
// To a decoder, what a document leaves out or has as null is the zero value. The methods
// absent and omitted are about members that only one side has.
type walker struct {
	raw   []byte
	parts decode.Outline
	next  int            // the place of the part to compare next
	c     jsonraw.Cursor // for texts with escapes
	path  []place
	ops   []Operation
	// assumed are the lists on the way, of which the first so many are sure.
	assumed []assumption
	sure    int
	names   []entryName // of the maps on the way
}

// A place is a step of the way: to a member by its name, or to an element by its index, or to
// an entry of a map by the place of its part.
type place struct {
	name  string
	index int
	is    placeKind
}

type placeKind byte

const (
	toMember placeKind = iota
	toElement
	toEntry
)

var walkers = sync.Pool{New: func() any { return new(walker) }}

// walk compares raw, one whole document, with v and appends the operations to ops.
func walk(ops []Operation, raw []byte, parts decode.Outline, v reflect.Value, s *shapes.Shape) ([]Operation, error) {
	w := walkers.Get().(*walker)
	defer w.release()
	w.raw, w.parts, w.ops = raw, parts, ops
	err := w.value(v, s, "")
	return w.ops, err
}

func (w *walker) release() {
	clear(w.path[:cap(w.path)])
	clear(w.assumed[:cap(w.assumed)])
	clear(w.names[:cap(w.names)])
	w.c.Seek(nil, 0, 0)
	*w = walker{c: w.c, path: w.path[:0], assumed: w.assumed[:0], names: w.names[:0]}
	walkers.Put(w)
}

func (w *walker) enter(p place) { w.path = append(w.path, p) }
func (w *walker) leave()        { w.path = w.path[:len(w.path)-1] }

// part is the part to compare next, skip steps over it.
func (w *walker) part() *decode.Part { return &w.parts[w.next] }
func (w *walker) skip()              { w.next = int(w.part().Next) }

func (w *walker) kind() jsonraw.Kind { return w.part().Kind }

func (w *walker) bytes(p *decode.Part) []byte { return w.raw[p.Start:p.End:p.End] }

// textOf returns what a part that is a string stands for, good until the next call.
func (w *walker) textOf(p *decode.Part) []byte {
	if p.Plain {
		return w.raw[p.Start+1 : p.End-1]
	}
	w.c.Seek(w.raw, int(p.Start), 0)
	text, _ := w.c.TextBytes() // it was read before
	return text
}

// name returns the name of the entry of a map that a part is the value of.
func (w *walker) name(p *decode.Part) []byte {
	c := jsonraw.At(w.raw, int(p.At), 0)
	name, _ := c.Name() // it was read before
	return name
}

func (w *walker) pointer() string {
	var room [128]byte
	p := room[:0]
	for _, at := range w.path {
		p = append(p, '/')
		switch at.is {
		case toElement:
			p = strconv.AppendInt(p, int64(at.index), 10)
		case toEntry:
			p = appendToken(p, w.name(&w.parts[at.index]))
		default:
			p = appendToken(p, at.name)
		}
	}
	return string(p)
}

// appendToken escapes a name as RFC 6901 says.
func appendToken[T string | []byte](p []byte, name T) []byte {
	for i := range len(name) {
		switch b := name[i]; b {
		case '~':
			p = append(p, "~0"...)
		case '/':
			p = append(p, "~1"...)
		default:
			p = append(p, b)
		}
	}
	return p
}

// located names the place of an error.
func (w *walker) located(err error) error {
	if err != nil {
		return &Error{Pointer: w.pointer(), Err: err}
	}
	return nil
}

func (w *walker) op(op Op, value []byte) error {
	if err := w.differs(); err != nil {
		return err
	}
	w.ops = append(w.ops, Operation{Op: op, Path: w.pointer(), Value: value})
	return nil
}

// set puts v at the path, where the document has a value already (Replace) or not (Add).
func (w *walker) set(op Op, v reflect.Value) error {
	if err := w.differs(); err != nil {
		return err
	}
	value, err := encodeValue(v)
	if err != nil {
		return err
	}
	return w.op(op, value)
}

// replace steps over the document's value and puts v in its place.
func (w *walker) replace(v reflect.Value) error {
	w.skip()
	return w.set(Replace, v)
}

// value compares the next value of the document with v. mergeKey is that of the field.
func (w *walker) value(v reflect.Value, s *shapes.Shape, mergeKey string) error {
	switch s.Kind {
	case shapes.String:
		return w.text(v.String())
	case shapes.Struct:
		return w.structure(v, s)
	case shapes.Map:
		return w.dict(v, s)
	case shapes.List:
		return w.list(v, s, mergeKey)
	case shapes.Pointer:
		switch isNull := w.kind() == jsonraw.Null; {
		case isNull && encodesNull(v, s):
			w.skip()
			return nil
		case isNull || v.IsNil():
			return w.replace(v)
		}
		return w.value(v.Elem(), s.Elem, mergeKey)
	case shapes.Any:
		return w.loose(v.Interface())
	case shapes.Bool, shapes.Int, shapes.Uint, shapes.Float:
		return w.scalar(v, s)
	default:
		return w.known(v, s)
	}
}

// documents compares by means of the documents that both sides encode to. It is the way for
// all that has a rule of its own: how a type writes itself, or which elements of a list without
// a key are which.
func (w *walker) documents(v reflect.Value, s *shapes.Shape, mergeKey string) error {
	if err := w.differs(); err != nil { // perhaps it does
		return err
	}
	raw := w.bytes(w.part())
	w.skip()
	before := reflect.New(s.Type)
	if err := decode.Unmarshal(raw, before.Interface()); err != nil {
		return w.located(err)
	}
	if before = before.Elem(); !v.CanAddr() {
		before = reflect.ValueOf(before.Interface())
	}
	docs := [3][]byte{raw}
	var err error
	if docs[1], err = encodeValue(before); err != nil {
		return err
	}
	if docs[2], err = encodeValue(v); err != nil {
		return err
	}
	docs[2] = withReplacements(docs[2])
	if bytes.Equal(docs[1], docs[2]) {
		return nil
	}
	d := differ{ops: w.ops}
	r, b, a := node{raw: docs[0]}, node{raw: docs[1]}, node{raw: docs[2]}
	d.value(w.pointer(), &b, &a, &r, shape{typ: s.Type, mergeKey: mergeKey})
	w.ops = d.ops
	return d.err
}

// withReplacements writes U+FFFD as what it is. The encoder writes an escape where a text is not
// UTF-8, which a decoder, and so the document before, never has.
func withReplacements(doc []byte) []byte {
	const escape = `\ufffd`
	if !bytes.Contains(doc, []byte(escape)) {
		return doc
	}
	var out []byte
	for i := 0; i < len(doc); {
		switch {
		case bytes.HasPrefix(doc[i:], []byte(escape)):
			out, i = append(out, "\uFFFD"...), i+len(escape)
		case doc[i] == '\\':
			out, i = append(out, doc[i], doc[i+1]), i+2
		default:
			out, i = append(out, doc[i]), i+1
		}
	}
	return out
}
