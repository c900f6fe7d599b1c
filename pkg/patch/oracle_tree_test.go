// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// A tree is a JSON value with its members in order. The oracle has its own type, because it must not share code with
// the code under test.
type tree struct {
	kind  byte   // '{', '[', '"', or 's' for the other scalars
	text  string // the text of a scalar; the decoded text of a string
	names []string
	kids  map[string]*tree
	elems []*tree
	doc   []byte // the text that it was read from
}

func newObject() *tree { return &tree{kind: '{', kids: map[string]*tree{}} }

// parseTree reads a document that an encoder wrote, so it does not look for errors.
func parseTree(doc []byte) *tree {
	n, _ := readTree(doc)
	return n
}

func readTree(doc []byte) (n *tree, rest []byte) {
	doc = bytes.TrimLeft(doc, " \n\t\r,:")
	whole := doc
	defer func() {
		if n != nil {
			n.doc = whole[:len(whole)-len(rest)]
		}
	}()
	switch doc[0] {
	case '{':
		n, doc = newObject(), doc[1:]
		for {
			var name, kid *tree
			if name, doc = readTree(doc); name == nil {
				return n, doc
			}
			kid, doc = readTree(doc)
			n.set(name.text, kid)
		}
	case '[':
		n, doc = &tree{kind: '['}, doc[1:]
		for {
			var elem *tree
			if elem, doc = readTree(doc); elem == nil {
				return n, doc
			}
			n.elems = append(n.elems, elem)
		}
	case '}', ']':
		return nil, doc[1:]
	case '"':
		end := 1
		for doc[end] != '"' {
			if doc[end] == '\\' {
				end++
			}
			end++
		}
		return &tree{kind: '"', text: unquote(doc[:end+1])}, doc[end+1:]
	}
	end := bytes.IndexAny(doc, ",]} \n\t\r")
	if end < 0 {
		end = len(doc)
	}
	return &tree{kind: 's', text: string(doc[:end])}, doc[end:]
}

func unquote(text []byte) (s string) {
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text[1 : len(text)-1])
	}
	if err := json.Unmarshal(text, &s); err != nil {
		panic(err)
	}
	return s
}

func (n *tree) set(name string, kid *tree) {
	if n.kids[name] == nil {
		n.names = append(n.names, name)
	}
	n.kids[name] = kid
}

func (n *tree) drop(name string) {
	delete(n.kids, name)
	n.names = slices.DeleteFunc(n.names, func(s string) bool { return s == name })
}

func (n *tree) clone() *tree {
	twin := &tree{kind: n.kind, text: n.text, names: slices.Clone(n.names)}
	if n.kind == '{' {
		twin.kids = map[string]*tree{}
	}
	for name, kid := range n.kids {
		twin.kids[name] = kid.clone()
	}
	for _, elem := range n.elems {
		twin.elems = append(twin.elems, elem.clone())
	}
	return twin
}

func (n *tree) is(kind byte) bool { return n != nil && n.kind == kind }

func (n *tree) null() bool { return n.is('s') && n.text == "null" }

func (n *tree) empty() bool {
	return n.null() || (n.kind == '{' || n.kind == '[') && len(n.names)+len(n.elems) == 0
}

// equal compares two values and ignores their spelling.
func (n *tree) equal(o *tree) bool {
	if n == nil || o == nil || n.kind != o.kind {
		return n == o
	}
	return n.text == o.text && slices.Equal(n.names, o.names) &&
		slices.EqualFunc(n.elems, o.elems, (*tree).equal) &&
		!slices.ContainsFunc(n.names, func(name string) bool { return !n.kids[name].equal(o.kids[name]) })
}

// same compares the bytes of two values that one encoder wrote. It distinguishes spellings, because some types
// keep JSON as it is.
func (n *tree) same(o *tree) bool {
	if n == nil || o == nil {
		return n == o
	}
	return bytes.Equal(n.doc, o.doc)
}

// A style is a way to write a tree: random white space and needless escapes, or none.
type style struct {
	r      *rand.Rand
	spaces bool
}

func (s style) write(b *bytes.Buffer, n *tree) {
	s.space(b)
	switch n.kind {
	case '{':
		b.WriteByte('{')
		for i, name := range n.names {
			s.comma(b, i)
			s.space(b)
			b.WriteString(s.escape(string(mustEncode(name))))
			s.space(b)
			b.WriteByte(':')
			s.write(b, n.kids[name])
		}
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		for i, elem := range n.elems {
			s.comma(b, i)
			s.write(b, elem)
		}
		b.WriteByte(']')
	case '"':
		b.WriteString(s.escape(string(mustEncode(n.text))))
	default:
		b.WriteString(n.text)
	}
	s.space(b)
}

func (s style) comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

func (s style) space(b *bytes.Buffer) {
	if s.spaces && s.r.Intn(4) == 0 {
		b.WriteByte(" \n\t\r"[s.r.Intn(4)])
	}
}

// escape sometimes writes one letter of a string as an escape.
func (s style) escape(text string) string {
	if i := strings.IndexByte(text, 'a'); s.spaces && i > 0 && text[i-1] != '\\' && s.r.Intn(8) == 0 {
		return text[:i] + `\u0061` + text[i+1:]
	}
	return text
}

// A jsonField is a field of a Go struct and its name in JSON.
type jsonField struct {
	name, mergeKey string
	index          []int // as for reflect.Value.FieldByIndex
	typ            reflect.Type
}

var fieldCache sync.Map

func fieldsOf(t reflect.Type) []jsonField {
	if fields, ok := fieldCache.Load(t); ok {
		return fields.([]jsonField)
	}
	var fields []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for _, in := range fieldsOf(indirect(f.Type)) {
				in.index = append([]int{i}, in.index...)
				fields = append(fields, in)
			}
		case name == "-":
		default:
			if name == "" {
				name = f.Name
			}
			fields = append(fields, jsonField{name, f.Tag.Get("patchMergeKey"), []int{i}, f.Type})
		}
	}
	fieldCache.Store(t, fields)
	return fields
}

func indirect(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// A place is the Go type of a value and the merge key of its list elements. The zero place has no Go type.
type place struct {
	typ      reflect.Type
	mergeKey string
	field    bool
}

// opaque reports whether the type encodes itself, or is an interface.
func (s place) opaque() bool {
	if s.typ == nil || s.typ.Kind() == reflect.Interface {
		return true
	}
	p := reflect.PointerTo(indirect(s.typ))
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func (s place) isStruct() bool { return !s.opaque() && indirect(s.typ).Kind() == reflect.Struct }

func (s place) member(name string) place {
	if s.opaque() {
		return place{}
	}
	t := indirect(s.typ)
	if t.Kind() == reflect.Map {
		return place{typ: t.Elem()}
	}
	if t.Kind() == reflect.Struct {
		for _, f := range fieldsOf(t) {
			if f.name == name {
				return place{f.typ, f.mergeKey, true}
			}
		}
	}
	return place{}
}

func (s place) elem() place {
	if s.opaque() {
		return place{}
	}
	if t := indirect(s.typ); t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		return place{typ: t.Elem()}
	}
	return place{}
}

// future is the prefix of the names of planted members, which no Go type knows.
const future = "zzFuture"

// planted returns the planted members of n itself. For a list, it returns the planted members of
// the elements.
func (n *tree) planted() (names []string) {
	if n == nil {
		return nil
	}
	for _, name := range n.names {
		if strings.HasPrefix(name, future) {
			names = append(names, name)
		}
	}
	for _, elem := range n.elems {
		names = append(names, elem.planted()...)
	}
	return names
}

// allPlanted counts every planted member of n and of the values inside it.
func (n *tree) allPlanted() map[string]int {
	count := map[string]int{}
	n.countPlanted(count)
	return count
}

func (n *tree) countPlanted(count map[string]int) {
	for _, name := range n.names {
		if strings.HasPrefix(name, future) {
			count[name]++
		} else {
			n.kids[name].countPlanted(count)
		}
	}
	for _, elem := range n.elems {
		elem.countPlanted(count)
	}
}

// marks returns the planted members that identify an element: its own, or else those of the values inside it.
func (n *tree) marks() []string {
	if names := n.planted(); len(names) > 0 {
		return names
	}
	return slices.Collect(maps.Keys(n.allPlanted()))
}

func below(at string, name any) string {
	if i, ok := name.(int); ok {
		return at + "/" + strconv.Itoa(i)
	}
	return at + "/" + fmt.Sprint(name)
}

func (s place) pointer() bool { return s.typ != nil && s.typ.Kind() == reflect.Pointer }
