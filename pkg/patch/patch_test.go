// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admitkit/admitkit/pkg/patch"
)

// patchRows are patch documents. want is what Parse and AppendJSON make of them; where it is
// empty Parse refuses them, with a message that holds fault.
var patchRows = []struct {
	reason, text, want, fault string
}{
	{"nothing", `[]`, `[]`, ""},
	{"null, as the API server reads it", `null`, `[]`, ""},
	{
		"all six operations",
		`[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/a"},{"op":"replace","path":"","value":{}},` +
			`{"op":"move","from":"/a","path":"/b"},{"op":"copy","path":"/a~1b","from":"/~0"},{"op":"test","path":"/0","value":"x"}]`,
		`[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/a"},{"op":"replace","path":"","value":{}},` +
			`{"op":"move","from":"/a","path":"/b"},{"op":"copy","from":"/~0","path":"/a~1b"},{"op":"test","path":"/0","value":"x"}]`, "",
	},
	{"members in any order, white space, members that mean nothing", ` [ { "value" : [ 1 ] , "path" : "/a" , "why" : 1 , "op" : "add" } ] `, `[{"op":"add","path":"/a","value":[ 1 ]}]`, ""},
	{"a missing value is null", `[{"op":"add","path":"/a"}]`, `[{"op":"add","path":"/a","value":null}]`, ""},
	{"a null value is a value", `[{"op":"test","path":"/a","value":null}]`, `[{"op":"test","path":"/a","value":null}]`, ""},
	{
		"a test without a value, which the API server finds equal to some nulls",
		`[{"op":"add","path":"/"},{"op":"copy","path":"/","from":"/"},{"op":"test","path":"/"}]`,
		`[{"op":"add","path":"/","value":null},{"op":"copy","from":"/","path":"/"},{"op":"test","path":"/","value":null}]`, "",
	},
	{"what an operation has no use for", `[{"op":"remove","path":"/a","from":"x","value":1}]`, `[{"op":"remove","path":"/a"}]`, ""},
	{"the last of two members counts", `[{"op":"add","op":"remove","path":"/a"}]`, `[{"op":"remove","path":"/a"}]`, ""},
	{"escapes", `[{"op":"\u0061dd","path":"/\u00e9\"","value":1e2}]`, `[{"op":"add","path":"/é\"","value":1e2}]`, ""},

	{"an object", `{}`, "", "array of operations"},
	{"a string", `"[]"`, "", "array of operations"},
	{"an array of arrays", `[[]]`, "", "array of operations"},
	{"not JSON", `[{]`, "", "array of operations"},
	{"something behind it", `[] []`, "", "array of operations"},
	{"empty", ``, "", "array of operations"},
	{"a path that is no string", `[{"op":"add","path":1}]`, "", "array of operations"},
	{"null for an operation", `[null]`, "", `operation 0: unknown op ""`},
	{"no op", `[{"path":"/a"}]`, "", `operation 0: unknown op ""`},
	{"another op", `[{"op":"remove","path":"/a"},{"op":"merge","path":"/a"}]`, "", `operation 1: unknown op "merge"`},
	{"names count with their case", `[{"OP":"remove","path":"/a"}]`, "", `unknown op ""`},
	{"an op in capitals", `[{"op":"Add","path":"/a"}]`, "", `unknown op "Add"`},
	{"no path", `[{"op":"remove"}]`, "", "remove needs a JSON pointer as its path"},
	{"a null path", `[{"op":"add","path":null}]`, "", "add needs a JSON pointer as its path"},
	{"a path without a slash", `[{"op":"add","path":"a/b","value":1}]`, "", "add needs a JSON pointer as its path"},
	{"a path with half an escape", `[{"op":"add","path":"/a~","value":1}]`, "", "add needs a JSON pointer as its path"},
	{"no from", `[{"op":"move","path":"/a"}]`, "", "move needs a JSON pointer as its from"},
	{"a from without a slash", `[{"op":"copy","from":"b","path":"/a"}]`, "", "copy needs a JSON pointer as its from"},
}

func TestParseAndAppendJSON(t *testing.T) {
	for _, row := range patchRows {
		t.Run(row.reason, func(t *testing.T) {
			p, err := patch.Parse([]byte(row.text))
			if row.want == "" {
				if err == nil || !strings.Contains(err.Error(), row.fault) {
					t.Fatalf("got error %v, want one with %q", err, row.fault)
				}
			} else if got := string(p.AppendJSON(nil)); err != nil || got != row.want {
				t.Fatalf("got %s and error %v, want %s", got, err, row.want)
			}
			compareWithServer(t, []byte(row.text))
		})
	}
}

// serverDocuments are what the patches of compareWithServer are applied to.
var serverDocuments = []string{
	`{}`, `{"a":1,"b":{"c":[1,2,{"a/b":null}]},"":[],"0":"x"}`, `{"a":[],"b":null,"~":{"a":{}}}`,
}

// compareWithServer holds Parse against the library of the API server. What that refuses to
// read, or what it cannot carry out on any document, may be refused here, and nothing else;
// what is accepted means the same there, before and after it went through a [patch.Patch].
func compareWithServer(t *testing.T, text []byte) {
	t.Helper()
	p, err := patch.Parse(text)
	again, serverErr := jsonpatch.DecodePatch(text)
	if err == nil && serverErr != nil {
		t.Fatalf("%s: accepted, the API server says %v", text, serverErr)
	}
	if err != nil {
		if serverErr == nil && !malformedPointer(again) {
			for _, doc := range serverDocuments {
				if result, err := applyOrPanic(doc, text); err == nil {
					t.Fatalf("%s: refused, the API server makes %s of %s", text, result, doc)
				}
			}
		}
		return
	}
	if err := p.Check(); err != nil {
		t.Fatalf("%s: parsed, then %v", text, err)
	}
	written := p.AppendJSON([]byte("x"))[1:]
	docs := serverDocuments
	if testsNothing(again) {
		docs = nil
	}
	for _, doc := range docs {
		want, wantErr := applyOrPanic(doc, text)
		got, gotErr := applyOrPanic(doc, written)
		if (gotErr == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("%s on %s: got %s and %v, want %s and %v", text, doc, got, gotErr, want, wantErr)
		}
	}
	back, err := patch.Parse(written)
	if err != nil || !reflect.DeepEqual(back, p) {
		t.Fatalf("%s: came back from %s as %v, error %v", text, written, back, err)
	}
	var want any
	if err := json.Unmarshal(written, &want); err != nil {
		return // a number that no Go type holds: valid JSON all the same
	}
	marshalled, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(marshalled, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("json.Marshal: got %s and error %v, want %s", marshalled, err, written)
	}
}

// malformedPointer finds the pointers of which RFC 6901 says that they are none, and that
// the API server reads all the same.
func malformedPointer(p jsonpatch.Patch) bool {
	for _, op := range p {
		path, _ := op.Path()
		from, _ := op.From()
		if !patch.Pointer(path).Valid() || !patch.Pointer(from).Valid() {
			return true
		}
	}
	return false
}

// testsNothing finds a test without a value. It has no meaning in RFC 6902, and the API
// server finds nulls that equal it and others that do not.
func testsNothing(p jsonpatch.Patch) bool {
	return slices.ContainsFunc(p, func(op jsonpatch.Operation) bool {
		_, value := op["value"]
		return op.Kind() == "test" && !value
	})
}

// applyOrPanic takes the panics of the library as refusals.
func applyOrPanic(doc string, text []byte) (result []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return apply([]byte(doc), text)
}

func TestCheck(t *testing.T) {
	for _, row := range []struct {
		reason string
		op     patch.Operation
		want   string
	}{
		{"a value that is not set is null", patch.Operation{Op: patch.Add, Path: "/a"}, ""},
		{"an unknown operation", patch.Operation{Op: "merge", Path: "/a"}, `operation 1: unknown op "merge"`},
		{"a path without a slash", patch.Operation{Op: patch.Remove, Path: "a"}, "operation 1: remove needs a JSON pointer as its path"},
		{"a from without a slash", patch.Operation{Op: patch.Move, From: "a", Path: "/a"}, "operation 1: move needs a JSON pointer as its from"},
		{"text for a value", patch.Operation{Op: patch.Add, Path: "/a", Value: []byte("text")}, `operation 1: the value of add at "/a" is not JSON`},
		{"two values", patch.Operation{Op: patch.Test, Path: "", Value: []byte("1 2")}, `operation 1: the value of test at "" is not JSON`},
	} {
		got := ""
		if err := (patch.Patch{{Op: patch.Remove, Path: "/x"}, row.op}).Check(); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}

func TestAppendJSONWritesValidTextWhateverThePointers(t *testing.T) {
	p := patch.Patch{
		{Op: patch.Add, Path: "/<&>\u2028\"\\\n\x7f\xff"},
		{Op: patch.Move, From: "/é", Path: "/b", Value: []byte("1")},
	}
	want := `[{"op":"add","path":"/\u003c\u0026\u003e\u2028\"\\\n` + "\x7f" + `\ufffd","value":null},{"op":"move","from":"/é","path":"/b"}]`
	if got := string(p.AppendJSON(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(patch.Patch(nil).AppendJSON(nil)); got != "[]" {
		t.Errorf("no patch: got %s, want []", got)
	}
}
