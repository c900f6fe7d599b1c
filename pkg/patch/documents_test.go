// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/patch"
)

// documentRows are two documents and the exact patch from one to the other.
var documentRows = []struct{ reason, before, after, want string }{
	{"one document in two spellings", `{"a":[1,"é<"],"b":null}`, " {\"b\" : null ,\n\"\\u0061\":[1, \"\\u00e9\\u003c\"] } ", `[]`},
	{"one number in many spellings", `[1,1.0,100,0.5,-0,12300e-2,1e400,0e99999999999]`, `[1.0,1,1E+2,5e-1,0,123,10e399,0]`, `[]`},
	{"numbers beyond any float", `[9007199254740993,1e400]`, `[9007199254740992,1.0000000000000000000001e400]`,
		`[{"op":"replace","path":"/0","value":9007199254740992},{"op":"replace","path":"/1","value":1.0000000000000000000001e400}]`},
	{"signs", `[-1,-0.0]`, `[1,0]`, `[{"op":"replace","path":"/0","value":1}]`},
	{"true and false", `{"a":true,"b":true}`, `{"a":false,"b":true}`, `[{"op":"replace","path":"/a","value":false}]`},
	{"null is not missing", `{"a":null}`, `{"b":null}`, `[{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":null}]`},
	{"empty is not null", `{"a":{},"b":[],"c":null}`, `{"a":null,"b":{},"c":[]}`,
		`[{"op":"replace","path":"/a","value":null},{"op":"replace","path":"/b","value":{}},{"op":"replace","path":"/c","value":[]}]`},
	{"values have the spelling of the second document", `{"a":1}`, `{"a":{"z": 1.50, "b":"\u0061"}}`, `[{"op":"replace","path":"/a","value":{"z": 1.50, "b":"\u0061"}}]`},
	{"only the members that differ", `{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1,"d":3,"e":4}}}`,
		`[{"op":"replace","path":"/a/b/d","value":3},{"op":"add","path":"/a/b/e","value":4}]`},
	{"names to escape", `{"a/b":{"~":1}}`, `{"a/b":{"~":2,"":3}}`, `[{"op":"add","path":"/a~1b/","value":3},{"op":"replace","path":"/a~1b/~0","value":2}]`},

	{"another kind at the root", `{"a":1}`, `[1]`, `[{"op":"replace","path":"","value":[1]}]`},
	{"scalars at the root", `"a"`, ` "b" `, `[{"op":"replace","path":"","value":"b"}]`},
	{"null at the root", `null`, `{"a":1}`, `[{"op":"replace","path":"","value":{"a":1}}]`},
	{"a list at the root", `[1,2,3]`, `[3,1,2]`, `[{"op":"move","from":"/2","path":"/0"}]`},

	{"elements by name", `[{"name":"a","x":1},{"name":"b","x":1}]`, `[{"name":"c"},{"\u006eame":"\u0062","x":1},{"name":"a","x":2}]`,
		`[{"op":"add","path":"/0","value":{"name":"c"}},{"op":"move","from":"/2","path":"/1"},{"op":"replace","path":"/2/x","value":2}]`},
	{"elements by type", `[{"type":"Ready","status":"True","at":1,"why":"x"},{"type":"Live","status":"True","at":1,"why":"x"}]`,
		`[{"type":"Live","status":"False","at":2,"why":"y"},{"type":"Ready","status":"True","at":1,"why":"x"}]`,
		`[{"op":"move","from":"/1","path":"/0"},{"op":"replace","path":"/0/at","value":2},{"op":"replace","path":"/0/status","value":"False"},{"op":"replace","path":"/0/why","value":"y"}]`},
	{"elements by a number", `[{"containerPort":80,"x":"a"},{"containerPort":81,"x":"b"}]`, `[{"containerPort":81.0,"x":"c"}]`,
		`[{"op":"remove","path":"/0"},{"op":"replace","path":"/0/x","value":"c"}]`},
	{"a duplicate name in the first list is not a key", `[{"name":"a","x":1,"y":1},{"name":"a","x":2,"y":2},{"name":"b"}]`, `[{"name":"a","x":2,"y":3},{"name":"c"}]`,
		`[{"op":"remove","path":"/2"},{"op":"remove","path":"/0"},{"op":"add","path":"/1","value":{"name":"c"}},{"op":"replace","path":"/0/y","value":3}]`},
	{"a duplicate name in the second list is not a key", `[{"name":"a","x":1}]`, `[{"name":"a","x":2},{"name":"a","x":1}]`, `[{"op":"add","path":"/0","value":{"name":"a","x":2}}]`},
	{"elements by content", `[[1],[2],{"a":1,"b":2}]`, `[[2],{"b":2,"a":3},[1.0]]`,
		`[{"op":"move","from":"/0","path":"/2"},{"op":"replace","path":"/1/a","value":3}]`},
	{"lists in lists", `[[[1,2],[3]],[[4]]]`, `[[[1,2],[3,5]],[[4]]]`, `[{"op":"add","path":"/0/1/1","value":5}]`},
}

func TestDocuments(t *testing.T) {
	for _, row := range documentRows {
		t.Run(row.reason, func(t *testing.T) {
			p, err := patch.Documents([]byte(row.before), []byte(row.after))
			if got := string(p.AppendJSON(nil)); err != nil || got != row.want {
				t.Errorf("got %s and error %v, want %s", got, err, row.want)
			}
			if err := checkDocumentPair([]byte(row.before), []byte(row.after), 8); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkDocumentPair checks the patch between two documents with the API server's library, and compares it with the
// results of Values and Apply. It returns nil if Documents rejects a document with an *Error. It leaves out the first
// operations one at a time, as many as operations says, to check that each is needed.
func checkDocumentPair(before, after []byte, operations int) error {
	p, err := patch.Documents(before, after)
	if err != nil {
		if at := (*patch.Error)(nil); !errors.As(err, &at) {
			return fmt.Errorf("%s and %s: error %w without a place", before, after, err)
		}
		return nil
	}
	for _, doc := range [][]byte{before, after} {
		if self, err := patch.Documents(doc, doc); err != nil || len(self) > 0 {
			return fmt.Errorf("%s and itself: %s, error %s", doc, self.AppendJSON(nil), fmt.Sprint(err))
		}
	}
	text := p.AppendJSON(nil)
	if again, err := patch.Values(json.RawMessage(before), json.RawMessage(after)); err != nil || !slices.EqualFunc(p, again, sameOperation) {
		return fmt.Errorf("%s to %s: Documents says %s, Values says %s, error %s", before, after, text, again.AppendJSON(nil), fmt.Sprint(err))
	}
	if !isContainer(before) || !isContainer(after) {
		return nil // the API server's library cannot patch a scalar, nor produce one
	}
	result, err := apply(before, text)
	if err != nil {
		return fmt.Errorf("%s does not apply to %s: %w", text, before, err)
	}
	if again, err := patch.Apply(before, p); err != nil || len(p) > 0 && !bytes.Equal(again, result) {
		return fmt.Errorf("%s patched with %s: the API server has %s, Apply has %s, error %s", before, text, result, again, fmt.Sprint(err))
	}
	want := parseTree(after)
	if rest, err := patch.Documents(result, after); err != nil || len(rest) > 0 || !parseTree(result).equalValue(want) {
		return fmt.Errorf("%s patched with %s:\n got %s\nwant %s\n(left to do: %s, error %s)", before, text, result, after, rest.AppendJSON(nil), fmt.Sprint(err))
	}
	for i := range p[:min(len(p), operations)] {
		rest := slices.Delete(slices.Clone(p), i, i+1)
		if result, err := apply(before, rest.AppendJSON(nil)); err == nil && parseTree(result).equalValue(want) {
			return fmt.Errorf("%s to %s: operation %d of %s changes nothing", before, after, i, text)
		}
	}
	return nil
}

func sameOperation(x, y patch.Operation) bool {
	return x.Op == y.Op && x.Path == y.Path && x.From == y.From &&
		(x.Value == nil) == (y.Value == nil) && (x.Value == nil || parseTree(x.Value).equalValue(parseTree(y.Value)))
}

func isContainer(doc []byte) bool {
	first := bytes.TrimLeft(doc, " \n\r\t")[0]
	return first == '{' || first == '['
}

// TestDocumentsOfRandomPairs checks the patches between random documents and randomly edited copies of them.
func TestDocumentsOfRandomPairs(t *testing.T) {
	for seed := range int64(1500) {
		r := rand.New(rand.NewSource(seed))
		root := randomTree(r, 4)
		if !root.is('{') && !root.is('[') {
			continue
		}
		before := writeTree(root, style{})
		for range r.Intn(6) {
			editTree(root, r)
		}
		after := writeTree(root, style{r: r, spaces: true})
		if err := checkDocumentPair(before, after, 8); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestDocumentsRejectsDuplicateNames(t *testing.T) {
	for _, row := range []struct{ reason, before, after, want string }{
		{"a duplicate name, wherever it is", `{"a":[{"b":1,"b":1}],"c":1}`, `{}`, "before: a[0].b: duplicate name"},
		{"two spellings of one name", `{}`, `{"b":1,"\u0062":1}`, "after: b: duplicate name"},
		{"text that is not JSON", `{"a":[1,]}`, `{}`, "before: a[1]: unexpected ']' looking for the beginning of a value"},
		{"text after the document", `{}`, `{} {}`, "after: unexpected '{' after the document"},
		{"nothing", ``, `{}`, "before: the document is empty"},
	} {
		p, err := patch.Documents([]byte(row.before), []byte(row.after))
		var at *patch.Error
		if p != nil || err == nil || err.Error() != row.want || !errors.As(err, &at) {
			t.Errorf("%s: got %s and error %v, want %s", row.reason, p.AppendJSON(nil), err, row.want)
		}
	}
	if _, err := patch.Values(func() {}, 1); err == nil || !strings.HasPrefix(err.Error(), "before: ") {
		t.Errorf("a value that does not encode: got error %v", err)
	}
	if _, err := patch.Values(1, func() {}); err == nil || !strings.HasPrefix(err.Error(), "after: ") {
		t.Errorf("a value that does not encode: got error %v", err)
	}
}

func TestDocumentsSharesNoMemoryWithItsArguments(t *testing.T) {
	before, after := []byte(`{"a":[1]}`), []byte(`{"a":["x",1],"b":{"c":"y"}}`)
	p, err := patch.Documents(before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := string(p.AppendJSON(nil))
	clear(before)
	clear(after)
	if got := string(p.AppendJSON(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDocumentsOfLongLists compares lists that are too long for an algorithm of quadratic cost, and documents
// of the greatest depth.
func TestDocumentsOfLongLists(t *testing.T) {
	const n = 10_000
	list := func(element func(i int) string) []byte {
		var b strings.Builder
		for i := range n {
			b.WriteString("," + element(i))
		}
		return []byte("[" + b.String()[1:] + "]")
	}
	number := func(i int) string { return fmt.Sprint(i) }
	named := func(i int) string { return fmt.Sprintf(`{"name":"n%d","x":%d}`, i, i) }
	r := rand.New(rand.NewSource(1))
	order := r.Perm(n)
	nested := func(inside string) []byte {
		return []byte(strings.Repeat(`[{"a":`, n/2) + inside + strings.Repeat(`}]`, n/2))
	}
	for _, row := range []struct {
		reason        string
		before, after []byte
		most          int
	}{
		{"backwards", list(number), list(func(i int) string { return number(n - 1 - i) }), n - 1},
		{"backwards, by name", list(named), list(func(i int) string { return named(n - 1 - i) }), n - 1},
		{"shuffled", list(number), list(func(i int) string { return number(order[i]) }), n - 1},
		{"shifted", list(number), list(func(i int) string { return number(i + 1) }), 2},
		{"all equal except one", list(func(int) string { return "0" }), list(func(i int) string { return number(i / (n - 1)) }), 1},
		{"all edited, by name", list(named), list(func(i int) string { return named(i)[:len(named(i))-1] + `,"y":1}` }), n},
		{"other spelling", list(number), list(func(i int) string { return number(i) + ".0" }), 0},
		{"deep inside", nested("1"), nested("2"), 1},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p, err := patch.Documents(row.before, row.after)
			if err != nil || len(p) > row.most || (len(p) == 0) != (row.most == 0) {
				t.Errorf("got %d operations and error %v, want up to %d", len(p), err, row.most)
			}
			if got := applyToList(row.before, p); got != "" && !parseTree([]byte(got)).equalValue(parseTree(row.after)) {
				t.Error("the patch gives another list")
			}
		})
	}
}

// applyToList applies a patch to a list of scalars. The API server's library copies the list for each operation, which
// is too slow for thousands of operations.
func applyToList(doc []byte, p patch.Patch) string {
	root := parseTree(doc)
	elem := root.elems
	for _, op := range p {
		var i, j int
		if _, err := fmt.Sscanf(string(op.Path), "/%d", &i); err != nil || op.Path.Parent() != "" {
			return ""
		}
		switch op.Op {
		case patch.Remove:
			elem = slices.Delete(elem, i, i+1)
		case patch.Add:
			elem = slices.Insert(elem, i, parseTree(op.Value))
		case patch.Replace:
			elem[i] = parseTree(op.Value)
		case patch.Move:
			if _, err := fmt.Sscanf(string(op.From), "/%d", &j); err != nil {
				return ""
			}
			moved := elem[j]
			elem = slices.Insert(slices.Delete(elem, j, j+1), i, moved)
		}
	}
	root.elems = elem
	return string(writeTree(root, style{}))
}
