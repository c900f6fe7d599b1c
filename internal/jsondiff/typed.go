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
// A first comparison knows the document by its outline: where the values are that the Go type has a field for.
// Decoding records the outline ([Original]); otherwise a pass over the document does. The walker walks the
// outline and the Go value side by side, from the top down (typed.go and typed_*.go). Where both agree,
// which is nearly everywhere, that copies and decodes nothing, and it never sees members that no field
// stands for. Where they differ, the outline says whether the document has a value, a null, or nothing
// there, and so which operation takes effect. Lists are compared index by index until an element
// differs. Then merge keys tell whether that element was changed or is another one.
//
// Lists without keys, and types that encode themselves, go to a second comparison. It compares three
// documents: the received one, and the encodings of the value before and after. Documents uses it
// too, with the received document as the value before. Values become nodes (document.go), which are opened
// level by level where they differ (tree.go). Lists are matched element by element (align.go,
// lcs.go) and reordered by removals, moves and additions (list.go, places.go). Both comparisons take
// near-linear time.

// A walker compares a document with a Go value, from the top down. Each method that takes a Go value compares
// it with the next part of the outline, appends the operations that turn the part into the value, and
// leaves the walker behind the part.
//
// To a decoder, an absent member and null are the zero value. The methods absent and omitted handle
// members that only one side has.
type walker struct {
	raw   []byte
	parts decode.Outline
	next  int            // index of the next part in parts
	c     jsonraw.Cursor // decodes strings with escapes
	path  []place
	ops   []Operation
	// assumed holds an assumption for each list on the path. The first sure of them are confirmed.
	assumed []assumption
	sure    int
	names   []entryName // of the maps on the path
}

// A place is one step of the path: a member by name, an element by index, or a map entry by the index of
// its part.
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

// part returns the part to compare next. skip steps over it.
func (w *walker) part() *decode.Part { return &w.parts[w.next] }
func (w *walker) skip()              { w.next = int(w.part().Next) }

func (w *walker) kind() jsonraw.Kind { return w.part().Kind }

func (w *walker) bytes(p *decode.Part) []byte { return w.raw[p.Start:p.End:p.End] }

// textOf returns the decoded text of a string part, valid until the next call.
func (w *walker) textOf(p *decode.Part) []byte {
	if p.Plain {
		return w.raw[p.Start+1 : p.End-1]
	}
	w.c.Seek(w.raw, int(p.Start), 0)
	text, _ := w.c.TextBytes() // cannot fail: it was read before
	return text
}

// name returns the name of the map entry whose value is p.
func (w *walker) name(p *decode.Part) []byte {
	c := jsonraw.At(w.raw, int(p.At), 0)
	name, _ := c.Name() // cannot fail: it was read before
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

// appendToken appends a name, escaped as RFC 6901 requires.
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

// located adds the current path to an error.
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

// set writes v to the current path. op is Replace if the document has a value there, else Add.
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

// replace steps over the document's value and replaces it with v.
func (w *walker) replace(v reflect.Value) error {
	w.skip()
	return w.set(Replace, v)
}

// value compares the next value of the document with v. mergeKey is the field's merge key.
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

// documents compares the encodings of both sides. It serves types that encode themselves and lists without
// a key.
func (w *walker) documents(v reflect.Value, s *shapes.Shape, mergeKey string) error {
	if err := w.differs(); err != nil { // it may differ
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

// withReplacements writes U+FFFD unescaped. The encoder writes it as an escape for text that is not UTF-8,
// while decoded text, and so the document before, has the character itself.
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
