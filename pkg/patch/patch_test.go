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

// patchRows are patch documents. want is the result of Parse and AppendJSON. If want is empty, Parse fails
// with a message that contains fault.
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
	{"members in any order, white space, unknown members", ` [ { "value" : [ 1 ] , "path" : "/a" , "why" : 1 , "op" : "add" } ] `, `[{"op":"add","path":"/a","value":[ 1 ]}]`, ""},
	{"a null value is a value", `[{"op":"test","path":"/a","value":null}]`, `[{"op":"test","path":"/a","value":null}]`, ""},
	{"members that an operation ignores", `[{"op":"remove","path":"/a","from":"x","value":1}]`, `[{"op":"remove","path":"/a"}]`, ""},
	{"the last of two members counts", `[{"op":"add","op":"remove","path":"/a"}]`, `[{"op":"remove","path":"/a"}]`, ""},
	{"escapes", `[{"op":"\u0061dd","path":"/\u00e9\"","value":1e2}]`, `[{"op":"add","path":"/é\"","value":1e2}]`, ""},

	{"an object", `{}`, "", "want a list of operations, got an object"},
	{"a string", `"[]"`, "", "want a list of operations, got a string"},
	{"a number", ` 7`, "", "want a list of operations, got a number"},
	{"an array of arrays", `[[]]`, "", "operation 0: want object, got array"},
	{"not JSON", `[{]`, "", "want a list of operations: unexpected ']'"},
	{"text after the document", `[] []`, "", "want a list of operations: unexpected '[' after the document"},
	{"empty", ``, "", "want a list of operations: unexpected end of JSON"},
	{"a path that is not a string", `[{"op":"remove","path":"/a"},{"op":"add","path":1}]`, "", "operation 1: path: want string, got number"},
	{"an op that is not a string", `[{"op":{},"path":"/a"}]`, "", "operation 0: op: want string, got object"},
	{"a path that is not a string, after one that is", `[{"path":"/a","path":1}]`, "", "want a list of operations: "},
	{"null for an operation", `[null]`, "", `operation 0: unknown op ""`},
	{"no op", `[{"path":"/a"}]`, "", `operation 0: unknown op ""`},
	{"an unknown op", `[{"op":"remove","path":"/a"},{"op":"merge","path":"/a"}]`, "", `operation 1: unknown op "merge"`},
	{"names are case-sensitive", `[{"OP":"remove","path":"/a"}]`, "", `unknown op ""`},
	{"an op in capitals", `[{"op":"Add","path":"/a"}]`, "", `unknown op "Add"`},
	{"no path", `[{"op":"remove"}]`, "", "operation 0: remove needs a path"},
	{"a null path", `[{"op":"add","path":null}]`, "", "add needs a path"},
	{"a path without a slash", `[{"op":"add","path":"a/b","value":1}]`, "", `add needs a JSON pointer as its path, not "a/b"`},
	{"a path with half an escape", `[{"op":"add","path":"/a~","value":1}]`, "", `add needs a JSON pointer as its path, not "/a~"`},
	{"no from", `[{"op":"move","path":"/a"}]`, "", "move needs a from, which cannot be the whole document"},
	{"the whole document as the from", `[{"op":"copy","from":"","path":"/a"}]`, "", "copy needs a from, which cannot be the whole document"},
	{"a null from", `[{"op":"copy","from":null,"path":"/a"}]`, "", "copy needs a from"},
	{"a from without a slash", `[{"op":"copy","from":"b","path":"/a"}]`, "", `copy needs a JSON pointer as its from, not "b"`},
	{"an add without a value", `[{"op":"add","path":"/a"}]`, "", `operation 0: add needs a value at "/a": to mean null, write null`},
	{"a replace without a value", `[{"op":"replace","path":"/a"}]`, "", `replace needs a value at "/a"`},
	{"a test without a value, which the API server finds equal to some nulls", `[{"op":"test","path":"/a"}]`, "", `test needs a value at "/a"`},
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

// serverDocuments are the documents to which compareWithServer applies patches.
var serverDocuments = []string{
	`{}`, `{"a":1,"b":{"c":[1,2,{"a/b":null}]},"":[],"0":"x"}`, `{"a":[],"b":null,"~":{"a":{}}}`,
}

// compareWithServer compares Parse with the API server's library. Parse may reject only patches that the
// library cannot read, or cannot apply to any document. A patch that Parse accepts must have the same effect
// in the library, before and after it is encoded again.
func compareWithServer(t *testing.T, text []byte) {
	t.Helper()
	p, err := patch.Parse(text)
	again, serverErr := jsonpatch.DecodePatch(text)
	if err == nil && serverErr != nil {
		t.Fatalf("%s: accepted, the API server says %v", text, serverErr)
	}
	if err != nil {
		if serverErr == nil && !malformedPointer(again) && !lacksValue(again) {
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
	for _, doc := range serverDocuments {
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
		return // valid JSON with a number that is too large for any Go type
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

// malformedPointer reports whether the patch has a pointer that RFC 6901 does not allow but the API server
// accepts.
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

// lacksValue reports whether an operation lacks a value that RFC 6902 requires. The API server reads a missing value as
// null. A test operation without a value then matches some nulls and not others.
func lacksValue(p jsonpatch.Patch) bool {
	return slices.ContainsFunc(p, func(op jsonpatch.Operation) bool {
		_, value := op["value"]
		return !value && slices.Contains([]string{"add", "replace", "test"}, op.Kind())
	})
}

// applyOrPanic returns an error if the library panics.
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
		{"null for a value", patch.Operation{Op: patch.Add, Path: "/a", Value: []byte("null")}, ""},
		{"a value of a remove", patch.Operation{Op: patch.Remove, Path: "/a", Value: []byte("1")}, ""},
		{"an add without a value", patch.Operation{Op: patch.Add, Path: "/a"}, `operation 1: add needs a value at "/a": to mean null, write null`},
		{"a replace with an empty value", patch.Operation{Op: patch.Replace, Path: "/a", Value: []byte{}}, `operation 1: replace needs a value at "/a": to mean null, write null`},
		{"a test without a value", patch.Operation{Op: patch.Test}, `operation 1: test needs a value at "": to mean null, write null`},
		{"an unknown operation", patch.Operation{Op: "merge", Path: "/a"}, `operation 1: unknown op "merge"`},
		{"a path without a slash", patch.Operation{Op: patch.Remove, Path: "a"}, `operation 1: remove needs a JSON pointer as its path, not "a"`},
		{"a from without a slash", patch.Operation{Op: patch.Move, From: "a", Path: "/a"}, `operation 1: move needs a JSON pointer as its from, not "a"`},
		{"a move without a from", patch.Operation{Op: patch.Move, Path: "/a"}, "operation 1: move needs a from, which cannot be the whole document"},
		{"a copy without a from", patch.Operation{Op: patch.Copy, Path: "/a"}, "operation 1: copy needs a from, which cannot be the whole document"},
		{"text for a value", patch.Operation{Op: patch.Add, Path: "/a", Value: []byte("text")}, `operation 1: the value of add at "/a" is not JSON`},
		{"two values", patch.Operation{Op: patch.Test, Path: "", Value: []byte("1 2")}, `operation 1: the value of test at "" is not JSON`},
	} {
		p := patch.Patch{{Op: patch.Remove, Path: "/x"}, row.op}
		got := ""
		if err := p.Check(); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
		if _, err := json.Marshal(p); (err != nil) != (row.want != "") || err != nil && !strings.HasSuffix(err.Error(), row.want) {
			t.Errorf("%s: json.Marshal: got error %v, want %q", row.reason, err, row.want)
		}
		if row.want == "" {
			continue
		}
		if _, err := patch.Apply([]byte(`{"x":1}`), p); err == nil || err.Error() != row.want {
			t.Errorf("%s: Apply: got error %v, want %q", row.reason, err, row.want)
		}
		if back, err := patch.Parse(p.AppendJSON(nil)); err == nil {
			t.Errorf("%s: written as %s it becomes %v", row.reason, p.AppendJSON(nil), back)
		}
	}
}

func TestAppendJSONWritesValidJSONForAnyPointer(t *testing.T) {
	p := patch.Patch{
		{Op: patch.Add, Path: "/<&>\u2028\"\\\n\x7f\xff", Value: []byte("null")},
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
