// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"errors"
	"reflect"
	"strconv"

	shapes "github.com/admitkit/admitkit/internal/shape"
)

// A walker compares a document with a Go value, from the top down. It reads the outline of the document, a
// decode.Outline with one part for each value. Each method that takes a Go value compares it with the next part,
// appends the operations that turn the part into the value, and advances the walker past that part.
//
// To a decoder, an absent member and null are the zero value. The methods absent and omitted handle
// members that only one side has.
type walker struct {
	reader
	path []place
	ops  []Operation
	// assumed holds an assumption for each list on the path. sure is the number of confirmed ones, which come first.
	assumed []assumption
	sure    int
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

func (w *walker) enter(p place) { w.path = append(w.path, p) }
func (w *walker) leave()        { w.path = w.path[:len(w.path)-1] }

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

// emptied compares a list or a map with nil. A nil never replaces an empty value.
func (w *walker) emptied(v reflect.Value) error {
	raw := w.bytes(w.part())
	w.skip()
	if zero, _ := isZeroText(raw, shapes.Map); zero {
		return nil
	}
	return w.set(Replace, v)
}

// An assumption says that the document's current element is the one that the Go list has at the same
// index.
type assumption struct {
	part     int // index of the list's part
	v        reflect.Value
	shape    *shapes.Shape
	mergeKey string
	index    int
	keys     *keyedList // nil if the list has no keys
	asked    bool       // keys was computed
}

var errOtherElement = errors.New("the document has a different element at this index")

// differs must be called before an operation is appended. Until then, the elements on the path are assumed to
// match by index. differs confirms this by their keys. If the keys of a list do not match, differs fails,
// w.sure is the index of that list, and the comparison returns to the list.
func (w *walker) differs() error {
	for ; w.sure < len(w.assumed); w.sure++ {
		a := &w.assumed[w.sure]
		if keys := w.keysOf(a); keys == nil || keys.before[a.index] != keys.after[a.index] {
			return errOtherElement
		}
	}
	return nil
}

func (w *walker) keysOf(a *assumption) *keyedList {
	if !a.asked {
		a.keys, a.asked = w.keyed(a.part, a.v, a.shape, a.mergeKey), true
	}
	return a.keys
}
