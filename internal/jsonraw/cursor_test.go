// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

// documents are the inputs of TestCursorAgreesWithKubernetesJSON, and the seeds of the fuzz test. Some are not valid
// JSON.
var documents = []string{
	`null`, ` true `, `false`, `0`, `-0`, `1.5e+10`, `01`, `1.`, `.5`, `-`, `1e`, `1e5 2`,
	`""`, `"a\"b\\c\/\b\f\n\r\t"`, `"é€😀"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\ud83dA"`, `"\ude00\ud83d"`,
	`"\u00g0"`, `"\x"`, "\"a\x01\"", "\"\xff\xfe\"", `"unterminated`, `"\`, `"\u12`,
	`[]`, `[1,2,[3]]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `{}`, `{"a":1,"a":2}`, `{"a":{"b":[{"c":null}]}}`,
	`{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `{"a":1 "b":2}`, `{"\u0061":1}`, `nul`, `truth`, `nulll`,
	``, ` `, `{}{}`, `{} x`, "\ufeff{}", strings.Repeat("[", 20) + strings.Repeat("]", 20),
	strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth),
	strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
	strings.Repeat(`{"a":`, MaxDepth+1) + "1" + strings.Repeat("}", MaxDepth+1),
}

func TestCursorAgreesWithKubernetesJSON(t *testing.T) {
	for _, doc := range documents {
		compare(t, []byte(doc))
	}
}

func FuzzCursorAgreesWithKubernetesJSON(f *testing.F) {
	for _, doc := range documents {
		if len(doc) < 1000 {
			f.Add([]byte(doc))
		}
	}
	f.Fuzz(compare)
}

// compare checks one document against sigs.k8s.io/json: both must accept or both reject it, with the same
// value.
func compare(t *testing.T, doc []byte) {
	t.Helper()
	var want json.RawMessage
	wantErr := kjson.UnmarshalCaseSensitivePreserveInts(doc, &want)
	c := NewCursor(doc)
	got, gotErr := c.Value()
	if gotErr == nil {
		gotErr = c.End()
	}
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%.100q: got error %v, sigs.k8s.io/json has %v", doc, gotErr, wantErr)
	}
	if gotErr != nil {
		var syntax *SyntaxError
		if !errors.As(gotErr, &syntax) || syntax.Offset > len(doc) {
			t.Fatalf("%.100q: got error %#v, want a SyntaxError inside the document", doc, gotErr)
		}
		return
	}
	if string(got) != string(want) {
		t.Fatalf("%.100q: got %.100q, want %.100q", doc, got, want)
	}
	var wantTree any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, &wantTree); err != nil {
		return // valid JSON with a number that is too large for any Go type
	}
	gotTree, err := tree(NewCursor(doc))
	if err != nil {
		t.Fatalf("%.100q: %v", doc, err)
	}
	if !reflect.DeepEqual(gotTree, wantTree) {
		t.Fatalf("%.100q: got %.100v, want %.100v", doc, gotTree, wantTree)
	}
}

// tree reads the next value with Members, Elements and Text.
func tree(c *Cursor) (any, error) {
	switch c.Kind() {
	case Object:
		m := map[string]any{}
		err := c.Members(func(name string) (err error) {
			m[name], err = tree(c)
			return err
		})
		return m, err
	case Array:
		list := []any{}
		err := c.Elements(func(int) error {
			v, err := tree(c)
			list = append(list, v)
			return err
		})
		return list, err
	case String:
		text, err := c.TextBytes()
		return string(text), err
	default:
		raw, err := c.Value()
		if err != nil {
			return nil, err
		}
		var v any
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &v)
		return v, err
	}
}

func TestSyntaxErrorsNameTheFaultAndItsPlace(t *testing.T) {
	for _, row := range []struct {
		reason, doc, want string
		offset            int
	}{
		{"a truncated object", `{"a":`, "unexpected end of JSON looking for the beginning of a value", 5},
		{"a stray byte", `{"a":1]`, "unexpected ']' after an object member", 6},
		{"a control character", "\"a\tb\"", `unexpected '\t' in a string`, 2},
		{"trailing bytes", `{} {}`, "unexpected '{' after the document", 3},
		{"too deep", strings.Repeat("[", MaxDepth+1), "nested deeper than 10000 levels", MaxDepth},
	} {
		c := NewCursor([]byte(row.doc))
		err := c.Skip()
		if err == nil {
			err = c.End()
		}
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Error() != row.want || syntax.Offset != row.offset {
			t.Errorf("%s: got %v at %+v, want %q at %d", row.reason, err, syntax, row.want, row.offset)
		}
	}
}
