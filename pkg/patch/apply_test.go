// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/patch"
)

// applyRows are documents and patches. If want is empty, Apply must fail. Then at is the pointer of the error, and
// fault is the beginning of its message.
var applyRows = []struct {
	reason, doc, patch, want, fault string
	at                              patch.Pointer
}{
	{"no operation", ` {"a" :1}`, `[]`, ` {"a" :1}`, "", ""},
	{
		"all six", `{"a":{"b":[1,2]},"c":"x"}`,
		`[{"op":"test","path":"/c","value":"x"},{"op":"add","path":"/a/b/-","value":3},{"op":"remove","path":"/a/b/0"},` +
			`{"op":"replace","path":"/c","value":{"d":1}},{"op":"copy","from":"/a/b","path":"/e"},{"op":"move","from":"/c/d","path":"/a/f"}]`,
		`{"a":{"b":[2,3],"f":1},"c":{},"e":[2,3]}`, "", "",
	},
	{"white space in front", "\n\t [1]", `[{"op":"add","path":"/0","value":0}]`, `[0,1]`, "", ""},
	{"another root", `{"a":1}`, `[{"op":"replace","path":"","value":[1]}]`, `[1]`, "", ""},
	{"names to unescape", `{"a/b":{"~1":1}}`, `[{"op":"remove","path":"/a~1b/~01"}]`, `{"a/b":{}}`, "", ""},
	{"numbers keep their digits", `{"a":1.50,"b":12345678901234567890,"c":"x"}`, `[{"op":"remove","path":"/c"}]`, `{"a":1.50,"b":12345678901234567890}`, "", ""},

	{"a missing member, replaced", `{}`, `[{"op":"replace","path":"/a","value":1}]`, `{"a":1}`, "", ""},
	{"a negative index", `[1,2,3]`, `[{"op":"remove","path":"/-1"}]`, `[1,2]`, "", ""},
	{"a negative index, added", `[1,2,3]`, `[{"op":"add","path":"/-1","value":4}]`, `[1,2,3,4]`, "", ""},
	{"a missing member, tested for null", `{}`, `[{"op":"test","path":"/a","value":null},{"op":"add","path":"/b","value":1}]`, `{"b":1}`, "", ""},
	{"a missing member, copied as null", `{"a":{}}`, `[{"op":"copy","from":"/a/b","path":"/c"}]`, `{"a":{},"c":null}`, "", ""},
	{"an element moved into the next one", `[1,{}]`, `[{"op":"move","from":"/0","path":"/0/a"}]`, `[{"a":1}]`, "", ""},

	{"one number in two spellings, tested", `{"a":1}`, `[{"op":"test","path":"/a","value":1.0}]`, "", "operation 0, test: a: the value equals the value of the test, but the API server requires the same spelling of strings and numbers, and no null in lists", "/a"},
	{"a list with null, tested", `{"a":[null]}`, `[{"op":"test","path":"/a","value":[null]}]`, "", "operation 0, test: a: the value equals the value of the test, but", "/a"},
	{"another value", `{"a":{"b":"secret"}}`, `[{"op":"test","path":"/a/b","value":"x"}]`, "", "operation 0, test: a.b: the value differs from the value of the test", "/a/b"},
	{"another document", `{"a":1}`, `[{"op":"test","path":"","value":{"a":2}}]`, "", "operation 0, test: the value differs from the value of the test", ""},
	{"a missing member, tested for more than null", `{"a":{}}`, `[{"op":"test","path":"/a/b","value":1}]`, "", "operation 0, test: a.b: there is nothing to test", "/a/b"},
	{"a missing element, tested", `{"a":[1]}`, `[{"op":"test","path":"/a/1","value":1}]`, "", "operation 0, test: a[1]: the array has 1 element", "/a/1"},

	{"a missing parent", `{"a":1}`, `[{"op":"test","path":"/a","value":1},{"op":"add","path":"/b/c","value":1},{"op":"remove","path":"/x"}]`, "", "operation 1, add: b.c: there is no b", "/b/c"},
	{"an element of a missing parent", `{"a":[{},{}]}`, `[{"op":"replace","path":"/a/2/b","value":1}]`, "", "operation 0, replace: a[2].b: there is no a[2]", "/a/2/b"},
	{"a text for a parent", `{"a":{"b":"x"}}`, `[{"op":"add","path":"/a/b/c/d","value":1}]`, "", "operation 0, add: a.b.c.d: a.b is a string, not an object or an array", "/a/b/c/d"},
	{"null for a parent", `{"a":null}`, `[{"op":"add","path":"/a/b","value":1}]`, "", "operation 0, add: a.b: a is null, not an object or an array", "/a/b"},
	{"an index after the end", `{"spec":{"containers":[{}]}}`, `[{"op":"add","path":"/spec/containers/2","value":{}}]`, "", "operation 0, add: spec.containers[2]: the array has 1 element", "/spec/containers/2"},
	{"an index before the beginning", `[1,2]`, `[{"op":"remove","path":"/-3"}]`, "", "operation 0, remove: -3: the array has 2 elements", "/-3"},
	{"a name in a list", `[1,2]`, `[{"op":"add","path":"/a","value":1}]`, "", `operation 0, add: a: "a" is not an index of an array`, "/a"},
	{"the end of a list, removed", `[1,2]`, `[{"op":"remove","path":"/-"}]`, "", `operation 0, remove: -: "-" is not an index of an array`, "/-"},
	{"nothing to replace in a list", `{"a":[]}`, `[{"op":"replace","path":"/a/0","value":1}]`, "", "operation 0, replace: a[0]: the array is empty", "/a/0"},
	{"nothing to remove", `{"a":{}}`, `[{"op":"remove","path":"/a/b"}]`, "", "operation 0, remove: a.b: there is nothing to remove", "/a/b"},
	{"nothing to move", `{"a":1}`, `[{"op":"move","from":"/b","path":"/c"}]`, "", "operation 0, move: b: there is nothing to move", "/b"},
	{"a move from a missing parent", `{"a":1}`, `[{"op":"move","from":"/b/c","path":"/d"}]`, "", "operation 0, move: b.c: there is no b", "/b/c"},
	{"a copy from a missing parent", `{"a":1}`, `[{"op":"copy","from":"/b/c","path":"/d"}]`, "", "operation 0, copy: b.c: there is no b", "/b/c"},
	{"no element to copy", `{"a":[1]}`, `[{"op":"copy","from":"/a/1","path":"/d"}]`, "", "operation 0, copy: a[1]: the array has 1 element", "/a/1"},
	{"a move to a missing parent", `{"a":1}`, `[{"op":"move","from":"/a","path":"/b/c"}]`, "", "operation 0, move: b.c: there is no b", "/b/c"},
	{"a move to an index that the move removes", `{"a":[1,2]}`, `[{"op":"move","from":"/a/0","path":"/a/2"}]`, "", "operation 0, move: a[2]: the array has 1 element", "/a/2"},
	{"a move into itself", `{"a":{"b":{}}}`, `[{"op":"move","from":"/a","path":"/a/b/c"}]`, "", "operation 0, move: a.b.c: a cannot be moved into itself", "/a/b/c"},
	{"a copy to a missing parent", `{"a":1}`, `[{"op":"copy","from":"/a","path":"/b/c"}]`, "", "operation 0, copy: b.c: there is no b", "/b/c"},
	{"members of a copied null", `{}`, `[{"op":"add","path":"/a","value":null},{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/c","value":1}]`, "", "operation 2, add: b.c: b is null, not an object or an array", "/b/c"},
	{"the whole document, added", `{}`, `[{"op":"add","path":"","value":{}}]`, "", "operation 0, add: the whole document can only be replaced or tested", ""},
	{"the whole document, removed", `{}`, `[{"op":"remove","path":""}]`, "", "operation 0, remove: the whole document can only be replaced or tested", ""},
	{"a scalar for a root", `{}`, `[{"op":"replace","path":"","value":1}]`, "", "operation 0, replace: only an object or an array can replace the whole document", ""},

	{"a scalar", `1`, `[{"op":"replace","path":"","value":{}}]`, "", "want an object or an array, got a number", ""},
	{"null", `null`, `[{"op":"add","path":"/a","value":1}]`, "", "want an object or an array, got null", ""},
	{"no document", ` `, `[{"op":"add","path":"/a","value":1}]`, "", "the document is empty", ""},
	{"not JSON", `{"a":[1,}`, `[{"op":"add","path":"/a","value":1}]`, "", "a[1]: unexpected '}' looking for the beginning of a value", "/a/1"},
	{"no document, no operation", ``, `[]`, "", "the document is empty", ""},
	{"not JSON, no operation", `{"a"}`, `[]`, "", "unexpected '}' after a member name", ""},
	{"a scalar, no operation", `true`, `[]`, "", "want an object or an array, got a boolean", ""},
	{"two documents, no operation", `{} {}`, `[]`, "", "unexpected '{' after the document", ""},
}

func TestApply(t *testing.T) {
	for _, row := range applyRows {
		t.Run(row.reason, func(t *testing.T) {
			p, err := patch.Parse([]byte(row.patch))
			if err != nil {
				t.Fatal(err)
			}
			got, err := patch.Apply([]byte(row.doc), p)
			if row.want != "" {
				if string(got) != row.want || err != nil {
					t.Errorf("got %s and error %v, want %s", got, err, row.want)
				}
				return
			}
			var at *patch.Error
			if got != nil || err == nil || !strings.HasPrefix(err.Error(), row.fault) || !errors.As(err, &at) || at.Pointer != row.at {
				t.Errorf("got %s and error %v, want one at %q that begins with %q", got, err, row.at, row.fault)
			}
		})
	}
}

func TestApplyRejectsInvalidPatches(t *testing.T) {
	_, err := patch.Apply([]byte(`{}`), patch.Patch{{Op: patch.Remove, Path: "/a"}, {Op: "merge", Path: "/a"}})
	if err == nil || err.Error() != `operation 1: unknown op "merge"` {
		t.Errorf("got error %v", err)
	}
}

// TestApplyBoundsCopies applies copies that each double the document. Apply must fail before they exhaust the memory.
func TestApplyBoundsCopies(t *testing.T) {
	p := patch.Patch{{Op: patch.Add, Path: "/a0", Value: []byte(`["` + strings.Repeat("x", 1000) + `"]`)}}
	for i := range 40 {
		from, to := patch.Pointer("").Append(fmt.Sprint("a", i)), patch.Pointer("").Append(fmt.Sprint("a", i+1))
		p = append(p, patch.Operation{Op: patch.Add, Path: to, Value: []byte("[]")},
			patch.Operation{Op: patch.Copy, From: from, Path: to.Append("-")},
			patch.Operation{Op: patch.Copy, From: from, Path: to.Append("-")})
	}
	_, err := patch.Apply([]byte(`{}`), p)
	if err == nil || !strings.HasSuffix(err.Error(), "the copies of the patch are more than 3145728 bytes together") || !strings.HasPrefix(err.Error(), "operation 3") {
		t.Errorf("got error %v", err)
	}
}

// TestApplyKeepsItsArguments checks that Apply does not change its arguments, and that the result does not share memory
// with them.
func TestApplyKeepsItsArguments(t *testing.T) {
	doc := []byte(`{"a":{"b":[1,2]}}`)
	p := patch.Patch{{Op: patch.Add, Path: "/c", Value: []byte(`{"d":"e"}`)}}
	for _, p := range []patch.Patch{p, nil} {
		original := bytes.Clone(doc)
		result, err := patch.Apply(doc, p)
		if err != nil || !bytes.Equal(doc, original) {
			t.Fatalf("the document is now %s, error %v", doc, err)
		}
		clear(result)
		if !bytes.Equal(doc, original) || len(p) > 0 && string(p[0].Value) != `{"d":"e"}` {
			t.Error("the result shares memory with an argument")
		}
	}
}

// TestApplyExplainsEveryFailure applies random operations to random documents. Apply must fail when the library does,
// name a place of the operation, and explain the failure without the library's message.
func TestApplyExplainsEveryFailure(t *testing.T) {
	docs := []string{`{"a":{"b":[1,null,{}],"c":null},"d":"x"}`, `[[],{"a":null},2.0]`, `{"a":[{"b":1},{"b":[]}]}`}
	places := []patch.Pointer{"", "/a", "/a/b", "/a/b/0", "/a/0/b", "/a/1", "/a/b/-", "/0", "/1/a", "/-1", "/a/b/-9", "/d", "/d/e", "/x/y", "/a/c", "/a/c/z", "/2"}
	values := []string{`null`, `1`, `2`, `"x"`, `{}`, `[null]`, `[1,null,{}]`, `{"b":1.0}`}
	ops := []patch.Op{patch.Add, patch.Remove, patch.Replace, patch.Move, patch.Copy, patch.Test}
	failed := 0
	for seed := range int64(5000) {
		r := rand.New(rand.NewSource(seed))
		var p patch.Patch
		for range 1 + r.Intn(3) {
			op := patch.Operation{Op: ops[r.Intn(len(ops))], Path: places[r.Intn(len(places))]}
			if op.Op == patch.Move || op.Op == patch.Copy {
				op.From = places[1+r.Intn(len(places)-1)]
			} else {
				op.Value = []byte(values[r.Intn(len(values))])
			}
			p = append(p, op)
		}
		doc := docs[r.Intn(len(docs))]
		want, wantErr := applyOrPanic(doc, p.AppendJSON(nil))
		got, err := patch.Apply([]byte(doc), p)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("seed %d, %s on %s: got %s and error %v, want %s and %v", seed, p.AppendJSON(nil), doc, got, err, want, wantErr)
		}
		if err == nil {
			continue
		}
		failed++
		var k int
		if _, scanErr := fmt.Sscanf(err.Error(), "operation %d, ", &k); scanErr != nil {
			t.Fatalf("seed %d: no operation in %q", seed, err)
		}
		var at *patch.Error
		if !errors.As(err, &at) || at.Pointer != p[k].Path && at.Pointer != p[k].From {
			t.Fatalf("seed %d, %s on %s: %v is not at a place of operation %d", seed, p.AppendJSON(nil), doc, err, k)
		}
		for _, words := range []string{"doc is missing", "does not apply", "Unable to", "error in", "%!", "runtime error", "testing value", "nil map", "json:", "fails too"} {
			if strings.Contains(err.Error(), words) {
				t.Fatalf("seed %d, %s on %s: these are the words of the library: %v (%v)", seed, p.AppendJSON(nil), doc, err, wantErr)
			}
		}
	}
	t.Logf("%d patches failed", failed)
}
