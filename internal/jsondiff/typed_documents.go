// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"reflect"

	"github.com/admitkit/admitkit/internal/decode"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// documents compares the JSON encodings of both sides. It is for types that encode themselves, and for lists without a
// key.
func (w *walker) documents(v reflect.Value, s *shapes.Shape, mergeKey string) error {
	if err := w.differs(); err != nil { // an operation may follow
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
