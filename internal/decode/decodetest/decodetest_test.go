// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

func TestTheReferenceAgreesWithItself(t *testing.T) { Run(t, reference) }

// wrongDecoders are decoders with one plausible fault each.
var wrongDecoders = []struct {
	fault     string
	unmarshal Unmarshal
}{
	{"names match in any case", json.Unmarshal},
	{"text after the document is ignored", func(raw []byte, into any) error {
		return kjson.NewDecoderCaseSensitivePreserveInts(bytes.NewReader(raw)).Decode(into)
	}},
	{"duplicate names are refused", strict(kjson.DisallowDuplicateFields)},
	{"unknown members are refused", strict(kjson.DisallowUnknownFields)},
	{"duplicate names replace, where they should merge", onTree(func(n *node) {
		last := map[string]int{}
		for i, m := range n.members {
			last[unquote(m.name)] = i
		}
		for i := len(n.members) - 1; i >= 0; i-- {
			if last[unquote(n.members[i].name)] != i {
				n.members = slices.Delete(n.members, i, i+1)
			}
		}
	})},
	{"escapes in names are not read", onTree(func(n *node) {
		for i, m := range n.members {
			n.members[i].name = quote(m.name[1 : len(m.name)-1])
		}
	})},
	{"empty lists are nil", onText(replace(`[]`, `null`))},
	{"null is a value", onText(replace(`null`, `0`))},
	{"floats lose their sign", onText(replace(`-0.0`, `0.0`))},
	{"integers become floats", onText(replace(`1,`, `1.0,`))},
	{"invalid UTF-8 is left out", onText(func(doc []byte) []byte { return bytes.ToValidUTF8(doc, nil) })},
	{"control characters are accepted", onText(replace("\x1f", ""))},
	{"a byte order mark is accepted", onText(func(doc []byte) []byte { return bytes.TrimPrefix(doc, []byte("\ufeff")) })},
	{"lone surrogates are refused", refusing(func(doc []byte) bool { return bytes.Contains(doc, []byte(`\ud800"`)) })},
	{"line ends in base64 are refused", refusing(func(doc []byte) bool { return bytes.Contains(doc, []byte(`\r\n`)) })},
	{"one level too few", refusing(func(doc []byte) bool { return depth(doc) == 10_000 })},
	{"one level too many", func(raw []byte, into any) error {
		if err := reference(raw, into); depth(raw) != 10_001 {
			return err
		}
		return nil
	}},
	{"raw JSON shares memory with the document", func(raw []byte, into any) error {
		err := reference(raw, into)
		if p, ok := into.(*json.RawMessage); ok && err == nil {
			*p = bytes.TrimSpace(raw)
		}
		return err
	}},
	{"the document is changed", func(raw []byte, into any) error {
		err := reference(raw, into)
		clear(raw)
		return err
	}},
	{"an invalid document causes a panic", func(raw []byte, into any) error {
		if err := reference(raw, into); err != nil {
			panic(err)
		}
		return nil
	}},
}

func reference(raw []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
}

func strict(option kjson.StrictOption) Unmarshal {
	return func(raw []byte, into any) error {
		faults, err := kjson.UnmarshalStrict(raw, into, option)
		return errors.Join(append(faults, err)...)
	}
}

func onText(change func(doc []byte) []byte) Unmarshal {
	return func(raw []byte, into any) error { return reference(change(bytes.Clone(raw)), into) }
}

func replace(old, with string) func(doc []byte) []byte {
	return func(doc []byte) []byte { return bytes.ReplaceAll(doc, []byte(old), []byte(with)) }
}

func onTree(change func(*node)) Unmarshal {
	return onText(func(doc []byte) []byte {
		root := parseable(doc, nil)
		if root == nil {
			return doc
		}
		root.visit(change)
		return []byte(root.String())
	})
}

func refusing(what func(doc []byte) bool) Unmarshal {
	return func(raw []byte, into any) error {
		if what(raw) {
			return errors.New("refused")
		}
		return reference(raw, into)
	}
}

// depth returns how deeply brackets nest. It also counts brackets in strings, but strings seldom contain many.
func depth(doc []byte) int {
	deepest, now := 0, 0
	for _, b := range doc {
		switch b {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// TestWrongDecodersAreFound checks that the first few thousand cases of NewCase find the fault of each of
// wrongDecoders.
func TestWrongDecodersAreFound(t *testing.T) {
	for _, row := range wrongDecoders {
		t.Run(row.fault, func(t *testing.T) {
			t.Parallel()
			const enough = 6000
			for seed := range int64(enough) {
				c := NewCase(seed)
				if err := Compare(row.unmarshal, c.Type, c.Doc); err != nil {
					t.Logf("seed %d, %s, %.200q: %v", seed, c.Type, c.Doc, err)
					return
				}
			}
			t.Errorf("not found in %d cases", enough)
		})
	}
}

func TestShrinkFindsTheSmallestDocumentAndType(t *testing.T) {
	for _, row := range []struct {
		fault, doc string
		fails      func(t reflect.Type, doc []byte) bool
		want       string
		wantType   reflect.Type
	}{
		{
			"a value deep inside", `{"metadata":{"name":"x"},"spec":{"steps":[{"name":"a"},{"name":"b","env":{"k":"BAD","l":"m"}}],"size":"1"}}`,
			func(_ reflect.Type, doc []byte) bool { return json.Valid(doc) && bytes.Contains(doc, []byte("BAD")) },
			`"BAD"`, reflect.TypeFor[string](),
		},
		{
			"a type", `{"spec":{"size":"15Gi","port":80,"steps":[{"name":"b"}]},"status":null}`,
			func(t reflect.Type, doc []byte) bool {
				return json.Valid(doc) && bytes.Contains(doc, []byte(`"size":"`))
			},
			`{"size":""}`, reflect.TypeFor[widgetSpec](),
		},
		{
			"no JSON", `{"spec":{"steps":[{"name":"a"},{"name":"b","env":{"k":"v`,
			func(_ reflect.Type, doc []byte) bool { return !json.Valid(doc) && bytes.Contains(doc, []byte(`{`)) },
			`{`, reflect.TypeFor[widget](),
		},
	} {
		c := Shrink(Case{Type: reflect.TypeFor[widget](), Doc: []byte(row.doc)}, row.fails)
		if string(c.Doc) != row.want || c.Type != row.wantType {
			t.Errorf("%s: got %q of %s, want %q of %s", row.fault, c.Doc, c.Type, row.want, row.wantType)
		}
	}
}

func TestReportShowsHowToReproduce(t *testing.T) {
	wrong := wrongDecoders[0].unmarshal
	for seed := range int64(1000) {
		c := NewCase(seed)
		if err := Compare(wrong, c.Type, c.Doc); err != nil {
			text := Report(wrong, c, err)
			for _, want := range []string{"ADMITKIT_DECODE_SEED=", c.Type.String(), "document"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
			return
		}
	}
	t.Error("nothing to report")
}

// TestGeneratedDocumentsDecode generates undamaged documents for the built-in types. Most of them must be valid, and
// some for each type.
func TestGeneratedDocumentsDecode(t *testing.T) {
	const tries = 30
	decoded := 0
	for i, typ := range builtin() {
		before := decoded
		for try := range tries {
			doc := generator{random(int64(i*tries + try))}.value(typ, 0).String()
			if reference([]byte(doc), reflect.New(typ).Interface()) == nil {
				decoded++
			}
		}
		if decoded == before {
			t.Errorf("no document of %s decodes", typ)
		}
	}
	if all := tries * len(builtin()); decoded*3 < all*2 {
		t.Errorf("only %d of %d documents decode", decoded, all)
	}
}

func TestCasesDependOnlyOnTheirSeeds(t *testing.T) {
	for seed := range int64(200) {
		if a, b := NewCase(seed), NewCase(seed); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: %s %q, then %s %q", seed, a.Type, a.Doc, b.Type, b.Doc)
		}
	}
}
