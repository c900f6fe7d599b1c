// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// A listKey reads the member that tells the elements of a list apart. A key is written so
// that a string and a number differ; "" stands for no key at all.
type listKey struct {
	name  string
	field *shapes.Field // nil where the elements are map[string]any
}

// keyOf returns the reader of a key of this name, or false where elements cannot have one.
func keyOf(elem *shapes.Shape, name string) (listKey, bool) {
	if elem.Kind == shapes.Pointer {
		elem = elem.Elem
	}
	switch {
	case name == "":
	case elem.Kind == shapes.Any:
		return listKey{name: name}, true
	case elem.Kind == shapes.Struct:
		if i := elem.Find([]byte(name)); i >= 0 {
			switch elem.Fields[i].Shape.Kind {
			case shapes.String, shapes.Int:
				return listKey{name: name, field: &elem.Fields[i]}, true
			}
		}
	}
	return listKey{}, false
}

// ofText writes the key that is a text.
func ofText[T string | []byte](text T) string { return `"` + string(text) }

// of returns the key of an element of a Go list.
func (k listKey) of(v reflect.Value) string {
	if k.field == nil {
		object, _ := v.Interface().(map[string]any)
		if text, ok := object[k.name].(string); ok {
			return ofText(text)
		}
		return ""
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	return k.written(k.field.Of(v))
}

// written returns the key that a field holds.
func (k listKey) written(v reflect.Value) string {
	switch {
	case k.field.Omitted(v):
		return ""
	case v.Kind() == reflect.String:
		return ofText(v.String())
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// missing returns the key of an element of the document that does not have it.
func (k listKey) missing() string {
	if k.field == nil {
		return ""
	}
	return k.written(reflect.Zero(k.field.Shape.Type))
}

// find returns the text of the key of the next element of a document, of which the cursor is a
// copy; nil if it has none. It reads no further than it must: should a name stand twice, the
// comparison will find out.
func (k listKey) find(c jsonraw.Cursor) ([]byte, error) {
	if c.Kind() != jsonraw.Object {
		return nil, nil
	}
	more, err := c.OpenObject()
	for more && err == nil {
		var name []byte
		if name, err = c.Name(); err != nil {
			break
		}
		if string(name) == k.name {
			return c.Value()
		}
		if err = c.Skip(); err == nil {
			more, err = c.NextMember()
		}
	}
	return nil, err
}

// at returns the key of the next element of a document.
func (k listKey) at(c jsonraw.Cursor) (string, error) {
	raw, err := k.find(c)
	if err != nil || jsonraw.IsNull(raw) {
		return k.missing(), err
	}
	switch c := jsonraw.At(raw, 0, 0); c.Kind() {
	case jsonraw.String:
		text, err := c.TextBytes()
		return ofText(text), err
	case jsonraw.Number:
		if k.field != nil {
			return string(raw), nil
		}
	}
	return "", nil
}

// same reports whether the next element of the document has the key of v.
func (k listKey) same(c jsonraw.Cursor, v reflect.Value) bool {
	if k.field != nil && v.Kind() == reflect.Struct { // nearly always
		raw, err := k.find(c)
		own := k.field.Of(v)
		if err == nil && raw != nil && (own.Kind() == reflect.String && samePlainText(raw, own.String()) ||
			own.CanInt() && sameScalar(raw, own, shapes.Int)) {
			return true
		}
	}
	key, err := k.at(c)
	return err == nil && key == k.of(v)
}

// A keyedList is a list of which every element has a key and no two share one, in the document
// and in Go.
type keyedList struct {
	before []string // the keys in the document
	parts  []int    // its elements
	after  []string // the keys in Go
}

// keyed reads the keys of a list: by the patchMergeKey of the field or else by name. It returns
// nil where neither tells the elements apart.
func (w *walker) keyed(list int, v reflect.Value, s *shapes.Shape, mergeKey string) (*keyedList, error) {
	for _, name := range []string{mergeKey, "name"} {
		key, ok := keyOf(s.Elem, name)
		if !ok {
			continue
		}
		l := &keyedList{}
		for i := range v.Len() {
			l.after = append(l.after, key.of(v.Index(i)))
		}
		for i := list + 1; i < int(w.parts[list].Next); i = int(w.parts[i].Next) {
			k, err := key.at(jsonraw.At(w.raw, int(w.parts[i].Start), 0))
			if err != nil {
				return nil, w.located(err)
			}
			l.before, l.parts = append(l.before, k), append(l.parts, i)
		}
		if distinct(l.before) && distinct(l.after) {
			return l, nil
		}
	}
	return nil, nil
}

// distinct reports whether every element has a key and no two share one.
func distinct(keys []string) bool {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if key == "" || seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// inPlace reports whether the list was at most appended to.
func (l *keyedList) inPlace() bool {
	return len(l.before) <= len(l.after) && slices.Equal(l.before, l.after[:len(l.before)])
}

// origin tells of each element of the Go list where it stands in the document, or none.
func (l *keyedList) origin() []int {
	places := make(map[string]int, len(l.before))
	for i, key := range l.before {
		places[key] = i
	}
	from := make([]int, len(l.after))
	for j, key := range l.after {
		from[j] = none
		if i, found := places[key]; found {
			from[j] = i
		}
	}
	return from
}
