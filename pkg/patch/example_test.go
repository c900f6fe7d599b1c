// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/patch"
)

// A mutating webhook decodes the object, changes it, and answers with the patch. This program's Go types do not
// know the container's "newField", which stays with its container.
func Example() {
	raw := []byte(`{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"web:1","newField":true}]}}`)

	var after corev1.Pod
	if err := json.Unmarshal(raw, &after); err != nil {
		panic(err)
	}
	after.Labels = map[string]string{"example.com/proxy": "yes"}
	proxy := corev1.Container{Name: "proxy", Image: "proxy:2"}
	after.Spec.Containers = append([]corev1.Container{proxy}, after.Spec.Containers...)
	after.Spec.Containers[1].ImagePullPolicy = corev1.PullAlways

	p, err := patch.Diff(raw, &after)
	if err != nil {
		panic(err)
	}
	for _, op := range p {
		fmt.Printf("%-7s %s %s\n", op.Op, op.Path.FieldPath(), op.Value)
	}
	// Output:
	// add     metadata.labels {"example.com/proxy":"yes"}
	// add     spec.containers[0] {"name":"proxy","image":"proxy:2","resources":{}}
	// add     spec.containers[1].imagePullPolicy "Always"
}

func ExampleDiff() {
	type object struct {
		Labels map[string]string `json:"labels,omitempty"`
		Hosts  []string          `json:"hosts,omitempty"`
	}
	raw := []byte(`{"labels": {"team/owner": "a"}, "hosts": ["x", "y", "z"], "unknown": 1}`)
	after := object{map[string]string{"team/owner": "b"}, []string{"z", "x"}}

	p, err := patch.Diff(raw, after)
	if err != nil {
		panic(err)
	}
	for _, op := range p {
		text, _ := json.Marshal(op)
		fmt.Println(string(text))
	}
	// Output:
	// {"op":"replace","path":"/labels/team~1owner","value":"b"}
	// {"op":"remove","path":"/hosts/1"}
	// {"op":"move","path":"/hosts/0","from":"/hosts/1"}
}

// Documents compares two documents without a Go type. It matches the list elements by name.
func ExampleDocuments() {
	before := []byte(`{"kind":"Widget","spec":{"parts":[{"name":"a","size":1},{"name":"b","size":2}]}}`)
	after := []byte(`{"kind": "Widget", "spec": {"parts": [{"name": "b", "size": 3}, {"name": "a", "size": 1.0}]}}`)

	p, err := patch.Documents(before, after)
	if err != nil {
		panic(err)
	}
	for _, op := range p {
		text, _ := json.Marshal(op)
		fmt.Println(string(text))
	}
	// Output:
	// {"op":"move","path":"/spec/parts/0","from":"/spec/parts/1"}
	// {"op":"replace","path":"/spec/parts/0/size","value":3}
}

func ExampleValues() {
	before := map[string]any{"labels": map[string]any{"team": "red"}}
	after := map[string]any{"labels": map[string]any{"team": "red", "example.com/tier": "web"}}

	p, err := patch.Values(before, after)
	fmt.Println(string(p.AppendJSON(nil)), err)
	// Output:
	// [{"op":"add","path":"/labels/example.com~1tier","value":"web"}] <nil>
}

func ExampleApply() {
	doc := []byte(`{"spec":{"containers":[{"name":"app","newField":true},{"name":"log"}]}}`)
	containers := patch.Pointer("").Append("spec").Append("containers")

	result, err := patch.Apply(doc, patch.Patch{
		{Op: patch.Move, From: containers.Index(1), Path: containers.Index(0)},
	})
	fmt.Println(string(result), err)

	_, err = patch.Apply(doc, patch.Patch{{Op: patch.Remove, Path: containers.Index(2)}})
	var at *patch.Error
	if errors.As(err, &at) {
		fmt.Println("fails at", at.Pointer)
	}
	// Output:
	// {"spec":{"containers":[{"name":"log"},{"name":"app","newField":true}]}} <nil>
	// fails at /spec/containers/2
}

func ExampleParse() {
	p, err := patch.Parse([]byte(`[{"op": "add", "path": "/spec/replicas", "value": 3}]`))
	fmt.Println(string(p.AppendJSON(nil)), err)
	_, err = patch.Parse([]byte(`[{"op": "add", "path": "spec.replicas", "value": 3}]`))
	fmt.Println(err)
	// Output:
	// [{"op":"add","path":"/spec/replicas","value":3}] <nil>
	// operation 0: add needs a JSON pointer as its path, not "spec.replicas"
}

func ExamplePointer() {
	var root patch.Pointer
	p := root.Append("metadata").Append("annotations").Append("example.com/a")
	fmt.Println(p)
	fmt.Println(p.FieldPath())
	fmt.Println(p.Last(), "in", p.Parent())
	fmt.Println(patch.Pointer("/metadata").Contains(p))
	for name := range p.Tokens() {
		fmt.Print(name, " ")
	}
	// Output:
	// /metadata/annotations/example.com~1a
	// metadata.annotations[example.com/a]
	// example.com/a in /metadata/annotations
	// true
	// metadata annotations example.com/a
}
