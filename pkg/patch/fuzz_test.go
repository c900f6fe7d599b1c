// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/pkg/patch"
)

// FuzzDiff looks for two JSON objects whose patch does not turn the first into the second.
func FuzzDiff(f *testing.F) {
	for _, row := range podRows {
		f.Add([]byte(row.raw), []byte(podRows[len(row.raw)%len(podRows)].raw))
	}
	for _, lists := range [][2]string{
		{`{"l":[1,2,3,4]}`, `{"l":[4,3,2,1]}`},
		{`{"l":[{"name":"a","x":1},{"name":"b"},{"name":"c"}]}`, `{"l":[{"name":"c"},{"name":"d"},{"name":"a","x":2}]}`},
		{`{"l":[{"k":1,"x":1},{"k":2},{"k":3,"y":[]}],"z":null}`, `{"l":[{"k":3,"y":[1]},{"k":2},{"k":2},null],"z":{}}`},
		{`{"l":[[{"a":1}],[]],"é":"<&>"}`, `{"l":[[],[{"a":1},{}]],"\u00e9":1.5e300}`},
		{`{"":{"a/b":{"m~n":0}}}`, `{"":{"a/b":{"m~n":-0.0,"":[]}}}`},
		{`{"a":1,"a":2}`, `{"a":3}`},
	} {
		f.Add([]byte(lists[0]), []byte(lists[1]))
	}
	f.Fuzz(func(t *testing.T, from, to []byte) {
		_, ok := object(from)
		after, too := object(to)
		if !ok || !too {
			return
		}
		p, err := patch.Diff(from, after)
		if errors.Is(err, patch.ErrDuplicateName) {
			return
		}
		if err != nil {
			t.Fatalf("%s to %s: %v", from, to, err)
		}
		text := p.AppendJSON(nil)
		if again, err := patch.Diff(from, &after); err != nil || !bytes.Equal(again.AppendJSON(nil), text) {
			t.Fatalf("%s to %s: %s, then %s and error %v", from, to, text, again.AppendJSON(nil), err)
		}
		if want, got := plain(t, after), resultOf(t, from, p); !bytes.Equal(got, want) {
			t.Fatalf("%s patched with %s:\n got %s\nwant %s", from, text, got, want)
		}
		if bytes.Contains(text, []byte("-0")) {
			return // two spellings of one number
		}
		for i := range p[:min(len(p), 8)] {
			rest := slices.Delete(slices.Clone(p), i, i+1)
			if result, err := apply(from, rest.AppendJSON(nil)); err == nil && bytes.Equal(plainText(t, result), plain(t, after)) {
				t.Fatalf("%s to %s: operation %d of %s changes nothing", from, to, i, text)
			}
		}
	})
}

// FuzzDocuments looks for two documents whose patch does not turn the first into the second, and for a document
// whose patch to itself is not empty.
func FuzzDocuments(f *testing.F) {
	for _, row := range documentRows {
		f.Add([]byte(row.before), []byte(row.after))
	}
	for i, row := range podRows {
		f.Add([]byte(row.raw), []byte(podRows[len(podRows)-1-i].raw))
	}
	f.Add([]byte(`{"a":{"b":1,"\u0062":2}}`), []byte(`[1e99999999999,-0.0e-5,"\ud800",null]`))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		if err := checkDocumentPair(before, after, 4); err != nil {
			t.Fatal(err)
		}
	})
}

func object(text []byte) (m map[string]any, ok bool) {
	err := kjson.UnmarshalCaseSensitivePreserveInts(text, &m)
	return m, err == nil && m != nil
}

func resultOf(t *testing.T, doc []byte, p patch.Patch) []byte {
	t.Helper()
	result, err := apply(doc, p.AppendJSON(nil))
	if err != nil {
		t.Fatalf("%s does not apply to %s: %v", p.AppendJSON(nil), doc, err)
	}
	return plainText(t, result)
}

// plain writes a value with one spelling for each number: 1.0 and 1 are equal, and so are -0 and 0.
func plain(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return plainText(t, text)
}

func plainText(t *testing.T, text []byte) []byte {
	t.Helper()
	for range 2 {
		m, ok := object(text)
		if !ok {
			t.Fatalf("%s is not an object", text)
		}
		text, _ = json.Marshal(m) // cannot fail: it was decoded from JSON
	}
	return text
}

// FuzzPointer looks for names that Append and Last do not preserve, and for pointers whose methods contradict each
// other.
func FuzzPointer(f *testing.F) {
	for _, row := range pointerRows {
		f.Add(string(row.pointer), "x")
		for _, name := range row.names {
			f.Add("/a", name)
		}
	}
	f.Add("a/b", "/~")
	f.Add("/~2", "~")
	f.Fuzz(func(t *testing.T, place, name string) {
		p := patch.Pointer(place)
		names := slices.Collect(p.Tokens())
		_ = p.FieldPath() // for invalid pointers too, since messages show them
		child := p.Append(name)
		if child.Parent() != p || child.Last() != name {
			t.Fatalf("%q below %q: parent %q, last %q", name, p, child.Parent(), child.Last())
		}
		if !p.Contains(child) || !p.Contains(p) || child.Contains(p) {
			t.Fatalf("%q and %q: contains is wrong", p, child)
		}
		if !p.Valid() {
			return
		}
		if !child.Valid() {
			t.Fatalf("%q is valid, %q is not", p, child)
		}
		var built patch.Pointer
		for _, name := range names {
			built = built.Append(name)
		}
		if built != p {
			t.Fatalf("%q has the names %q, of which %q is made", p, names, built)
		}
		if got := slices.Collect(child.Tokens()); !slices.Equal(got, append(names, name)) {
			t.Fatalf("%q has the names %q", child, got)
		}
		if other := patch.Pointer(name); other.Valid() {
			inner := slices.Collect(other.Tokens())
			within := len(inner) >= len(names) && slices.Equal(inner[:len(names)], names)
			if p.Contains(other) != within {
				t.Fatalf("%q contains %q is %v", p, other, !within)
			}
		}
	})
}

// FuzzParse looks for patch documents that Parse and the API server read differently.
func FuzzParse(f *testing.F) {
	for _, row := range patchRows {
		f.Add([]byte(row.text))
	}
	f.Fuzz(compareWithServer)
}
