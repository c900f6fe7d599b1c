// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/patch"
)

// applyRows are documents and patches. Where want is empty the patch fails, with a message that
// begins with fault, at the pointer.
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

	{"a member that is not there, replaced", `{}`, `[{"op":"replace","path":"/a","value":1}]`, `{"a":1}`, "", ""},
	{"a negative index", `[1,2,3]`, `[{"op":"remove","path":"/-1"}]`, `[1,2]`, "", ""},
	{"a missing member, tested for null", `{}`, `[{"op":"test","path":"/a","value":null},{"op":"add","path":"/b","value":1}]`, `{"b":1}`, "", ""},
	{"one number in two spellings, tested", `{"a":1}`, `[{"op":"test","path":"/a","value":1.0}]`, "", "operation 0, test: a: testing value /a failed", "/a"},

	{"a parent that is not there", `{"a":1}`, `[{"op":"test","path":"/a","value":1},{"op":"add","path":"/b/c","value":1},{"op":"remove","path":"/x"}]`, "", "operation 1, add: b.c: add operation does not apply", "/b/c"},
	{"an index behind the end", `{"spec":{"containers":[{}]}}`, `[{"op":"add","path":"/spec/containers/2","value":{}}]`, "", "operation 0, add: spec.containers[2]: ", "/spec/containers/2"},
	{"nothing to move", `{"a":1}`, `[{"op":"move","from":"/b","path":"/c"}]`, "", "operation 0, move: c: ", "/c"},
	{"members of a null", `null`, `[{"op":"add","path":"/a","value":1}]`, "", "operation 0, add: a: not possible: assignment to entry in nil map", "/a"},
	{"members of a copied null", `{}`, `[{"op":"add","path":"/a","value":null},{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/c","value":1}]`, "", "operation 2, add: b.c: ", "/b/c"},
	{"a scalar for a root", `{}`, `[{"op":"replace","path":"","value":1}]`, "", "operation 0, replace: ", ""},
	{"a scalar", `1`, `[{"op":"replace","path":"","value":{}}]`, "", "json: cannot unmarshal number", ""},
	{"no document", ` `, `[{"op":"add","path":"/a","value":1}]`, "", "there is no document", ""},
	{"not JSON", `{"a"}`, `[{"op":"add","path":"/a","value":1}]`, "", "invalid character '}'", ""},
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

func TestApplyRefusesWhatIsNoPatch(t *testing.T) {
	_, err := patch.Apply([]byte(`{}`), patch.Patch{{Op: patch.Add, Path: "/a"}, {Op: "merge", Path: "/a"}})
	if err == nil || err.Error() != `operation 1: unknown op "merge"` {
		t.Errorf("got error %v", err)
	}
}

// TestApplyBoundsCopies lets each copy double what there is: a few of them would fill any memory.
func TestApplyBoundsCopies(t *testing.T) {
	p := patch.Patch{{Op: patch.Add, Path: "/a0", Value: []byte(`["` + strings.Repeat("x", 1000) + `"]`)}}
	for i := range 40 {
		from, to := patch.Pointer("").Append(fmt.Sprint("a", i)), patch.Pointer("").Append(fmt.Sprint("a", i+1))
		p = append(p, patch.Operation{Op: patch.Add, Path: to, Value: []byte("[]")},
			patch.Operation{Op: patch.Copy, From: from, Path: to.Append("-")},
			patch.Operation{Op: patch.Copy, From: from, Path: to.Append("-")})
	}
	_, err := patch.Apply([]byte(`{}`), p)
	if err == nil || !strings.Contains(err.Error(), "exceeding the limit 3145728") || !strings.HasPrefix(err.Error(), "operation 3") {
		t.Errorf("got error %v", err)
	}
}

// TestApplyKeepsItsArguments also finds results that share memory with them.
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
