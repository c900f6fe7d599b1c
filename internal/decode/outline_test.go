// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/shape"
)

// unmarshal is [decode.Unmarshal]. It also compares the outline of the decoder with the outline of a scan, and
// returns an error if they differ.
func unmarshal(raw []byte, into any) error {
	err := decode.Unmarshal(raw, into)
	t := reflect.TypeOf(into).Elem()
	again := reflect.New(t)
	var decoded, scanned decode.Outline
	end, errAgain := decode.At(raw, 0, 0, again.Interface(), &decoded)
	if errAgain != nil || len(decoded) == 0 {
		return err
	}
	c := jsonraw.At(raw[:end], 0, 0)
	document := c.Rest()
	if errScan := scanned.Scan(document, shape.Of(t)); errScan != nil {
		return fmt.Errorf("decoded, but not scanned: %w", errScan)
	}
	if !slices.Equal(decoded, scanned) {
		return fmt.Errorf("outlines differ:\ndecoded %+v\nscanned %+v", decoded, scanned)
	}
	return errors.Join(err, wellFormed(document, scanned))
}

// wellFormed returns an error if a part of the outline does not match the value at its position in the document.
func wellFormed(document []byte, o decode.Outline) error {
	for i, p := range o {
		raw := document[p.Start:p.End]
		c := jsonraw.NewCursor(raw)
		value, err := c.Value()
		switch {
		case err != nil || len(value) != len(raw) || jsonraw.NewCursor(raw).Kind() != p.Kind:
			return fmt.Errorf("part %d is not a value: %s", i, raw)
		case int(p.Next) <= i || int(p.Next) > len(o):
			return fmt.Errorf("part %d ends at part %d of %d", i, p.Next, len(o))
		case p.Plain && strings.ContainsAny(string(raw), `\`):
			return fmt.Errorf("part %d is called plain: %s", i, raw)
		}
		for _, inner := range o[i+1 : p.Next] {
			if inner.Start <= p.Start || inner.End >= p.End {
				return fmt.Errorf("part %d has one inside that is not: %s", i, raw)
			}
		}
	}
	return nil
}

func TestOutline(t *testing.T) {
	type element struct {
		Name string         `json:"name"`
		Free any            `json:"free"`
		More map[string]int `json:"more"`
	}
	type document struct {
		List  []element `json:"list"`
		Child *element  `json:"child"`
	}
	raw := []byte(` { "unknown": [1, {"a": "b"}], "list": [ {"name": "x\ty", "free": {"k": ["v"]}} ], "child": {"more": {"n" : 7}} } `)
	var o decode.Outline
	if _, err := decode.At(raw, 0, 0, new(document), &o); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range o {
		got = append(got, fmt.Sprintf("%d %s %d %t", p.At, raw[1+p.Start:1+p.End], p.Next, p.Plain))
	}
	want := []string{
		`0 { "unknown": [1, {"a": "b"}], "list": [ {"name": "x\ty", "free": {"k": ["v"]}} ], "child": {"more": {"n" : 7}} } 10 false`,
		`0 [ {"name": "x\ty", "free": {"k": ["v"]}} ] 7 false`,
		`0 {"name": "x\ty", "free": {"k": ["v"]}} 7 false`,
		`0 "x\ty" 4 false`,
		`1 {"k": ["v"]} 7 false`,
		`66 ["v"] 7 false`,
		`0 "v" 7 true`,
		`1 {"more": {"n" : 7}} 10 false`,
		`2 {"n" : 7} 10 false`,
		`101 7 10 false`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestScanErrorsNameThePlace(t *testing.T) {
	type element struct {
		Name string            `json:"name"`
		More map[string]string `json:"more"`
	}
	type document struct {
		List []element `json:"list"`
	}
	for _, row := range []struct {
		raw, pointer, text string
	}{
		{`{"list":[{},{"name":"a","name":"b"}]}`, "/list/1/name", decode.ErrRepeated.Error()},
		{`{"list":[{"more":{"a/b":}}]}`, "/list/0/more/a~1b", "unexpected '}' looking for the beginning of a value"},
		{`{"list":[{"name":"a}]}`, "/list/0/name", "unexpected end of JSON in a string"},
		{`{"list":[{"name":"a"]}`, "/list/0", "unexpected ']' after an object member"},
		{`{"list":[] "x":1}`, "", "unexpected '\"' after an object member"},
		{`{"list":[]}}`, "", "unexpected '}' after the document"},
		{`{"x":1,"list":[1,2`, "/list", "unexpected end of JSON after an array element"},
	} {
		var o decode.Outline
		err := o.Scan([]byte(row.raw), shape.Of(reflect.TypeFor[document]()))
		var fault *decode.Error
		if !errors.As(err, &fault) || decode.Pointer(fault.Path) != row.pointer || err.Error() != row.text {
			t.Errorf("%s: %#v at %q, want %s at %q", row.raw, err, decode.Pointer(fault.Path), row.text, row.pointer)
		}
	}
}
