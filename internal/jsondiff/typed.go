// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"reflect"
	"strconv"
	"sync"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// How differences are found.
//
// A first comparison reads the outline of the document: the positions of the values for which the Go type has a field.
// Decoding records the outline ([Original]); otherwise a pass over the document does. The walker compares the outline
// and the Go value side by side, from the top down (typed.go and typed_*.go). Where both agree, which is nearly
// everywhere, the walker copies and decodes nothing. It never reads members without a field. Where they differ, the
// outline shows whether the document has a value, a null, or nothing there, and so which operation is needed. Lists are
// compared index by index until an element differs. Then merge keys show whether that element was changed or is a
// different element.
//
// Lists without keys, and types that encode themselves, go to a second comparison. It compares three
// documents: the received one, and the encodings of the value before and after the changes. The function Documents
// also uses this comparison. There, the received document is also the value before the changes.
//
// Values become nodes (document.go), which are opened level by level where they differ (tree.go). Lists are matched
// element by element (align.go, lcs.go) and reordered by removals, moves and additions (list.go, places.go). Both
// comparisons take near-linear time.

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
	*w = walker{reader: reader{c: w.c, names: w.names[:0]}, path: w.path[:0], assumed: w.assumed[:0]}
	walkers.Put(w)
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
		switch isNull, toNull := w.kind() == jsonraw.Null, encodesNull(v, s); {
		case isNull && toNull:
			w.skip()
			return nil
		case isNull || toNull: // a pointer to a nil list encodes as null, which does not decode to an empty list
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

// loose compares a value of type any, as in an Unstructured.
func (w *walker) loose(x any) error {
	kind := w.kind()
	switch x := x.(type) {
	case map[string]any:
		if x != nil && kind == jsonraw.Object {
			if done, err := w.entries(looseTable(x), len(x)); done {
				return err
			}
		}
	case []any:
		if x != nil && kind == jsonraw.Array {
			return w.list(reflect.ValueOf(x), looseList, "")
		}
	default:
		if w.sameLoose(w.part(), x) {
			w.skip()
			return nil
		}
	}
	return w.documents(reflect.ValueOf(&x).Elem(), looseValue, "")
}

// sameLoose returns true only if the part decodes to x.
func (w *walker) sameLoose(p *decode.Part, x any) bool {
	raw := w.bytes(p)
	switch x := x.(type) {
	case nil:
		return p.Kind == jsonraw.Null
	case string:
		return p.Kind == jsonraw.String && string(w.textOf(p)) == x
	case bool:
		return x && raw[0] == 't' || !x && raw[0] == 'f'
	case int64:
		n, ok := integer(raw)
		return ok && n == x
	case float64:
		n, err := strconv.ParseFloat(string(raw), 64)
		return p.Kind == jsonraw.Number && err == nil && sameFloat(n, x)
	}
	return false
}
