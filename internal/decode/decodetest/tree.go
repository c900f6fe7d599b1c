// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
)

// A node is a JSON value that may be invalid: it keeps the spelling of scalars and names, and names may be
// duplicates.
type node struct {
	kind    byte   // '{', '[', or 0 for a scalar
	text    string // text of a scalar
	members []member
	elems   []*node
	// typ is the Go type of this value without pointers, or nil if it is unknown.
	typ reflect.Type
}

type member struct {
	name  string // including quotes and escapes
	value *node
}

func scalar(text string) *node { return &node{text: text} }

// textNode returns the node of a string.
func textNode(s string) *node { return scalar(quote(s)) }

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// unquote returns the decoded text of a name or a string.
func unquote(text string) string {
	var s string
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return text
	}
	return s
}

func (n *node) isString() bool { return n.kind == 0 && n.text != "" && n.text[0] == '"' }

func (n *node) isNumber() bool {
	return n.kind == 0 && n.text != "" && (n.text[0] == '-' || '0' <= n.text[0] && n.text[0] <= '9')
}

func (n *node) clone() *node {
	twin := *n
	twin.members = slices.Clone(n.members)
	for i := range twin.members {
		twin.members[i].value = twin.members[i].value.clone()
	}
	twin.elems = slices.Clone(n.elems)
	for i := range twin.elems {
		twin.elems[i] = twin.elems[i].clone()
	}
	return &twin
}

// set replaces the value of n in place.
func (n *node) set(value *node) {
	typ := n.typ
	*n = *value
	n.typ = typ
}

// visit calls f for n and all values inside it, the outermost first.
func (n *node) visit(f func(*node)) {
	f(n)
	for _, m := range n.members {
		m.value.visit(f)
	}
	for _, elem := range n.elems {
		elem.visit(f)
	}
}

// parse reads valid JSON for a value of type t. It panics if the JSON is invalid.
func parse(doc []byte, t reflect.Type) *node {
	n, _ := read(doc)
	n.annotate(t)
	return n
}

// read reads the JSON value at the start of doc and returns the bytes after it. It returns a nil node if a closing
// bracket comes first.
func read(doc []byte) (n *node, rest []byte) {
	doc = bytes.TrimLeft(doc, " \n\t\r,:")
	switch doc[0] {
	case '{':
		n, doc = &node{kind: '{'}, doc[1:]
		for {
			var name, value *node
			if name, doc = read(doc); name == nil {
				return n, doc
			}
			value, doc = read(doc)
			n.members = append(n.members, member{name.text, value})
		}
	case '[':
		n, doc = &node{kind: '['}, doc[1:]
		for {
			var elem *node
			if elem, doc = read(doc); elem == nil {
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
		return scalar(string(doc[:end+1])), doc[end+1:]
	}
	end := bytes.IndexAny(doc, ",]} \n\t\r")
	if end < 0 {
		end = len(doc)
	}
	return scalar(string(doc[:end])), doc[end:]
}

// annotate sets the Go type of each value.
func (n *node) annotate(t reflect.Type) {
	n.typ = indirect(t)
	if n.typ == nil || opaque(n.typ) {
		return
	}
	for _, m := range n.members {
		m.value.annotate(memberType(n.typ, unquote(m.name)))
	}
	for _, elem := range n.elems {
		elem.annotate(elemType(n.typ))
	}
}

// A writer writes nodes, with random white space if it has a source of randomness.
type writer struct {
	bytes.Buffer
	r *rand.Rand
}

func (n *node) String() string {
	var w writer
	w.write(n)
	return w.Buffer.String()
}

func (w *writer) write(n *node) {
	w.space()
	switch n.kind {
	case '{':
		w.WriteByte('{')
		for i, m := range n.members {
			w.comma(i)
			w.space()
			w.WriteString(m.name)
			w.space()
			w.WriteByte(':')
			w.write(m.value)
		}
		w.WriteByte('}')
	case '[':
		w.WriteByte('[')
		for i, elem := range n.elems {
			w.comma(i)
			w.write(elem)
		}
		w.WriteByte(']')
	default:
		w.WriteString(n.text)
	}
	w.space()
}

func (w *writer) comma(i int) {
	if i > 0 {
		w.WriteByte(',')
	}
}

func (w *writer) space() {
	if w.r != nil && w.r.Intn(3) == 0 {
		for range 1 + w.r.Intn(2) {
			w.WriteByte(" \n\t\r"[w.r.Intn(4)])
		}
	}
}
