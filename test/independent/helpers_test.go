// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// An editor collects the operations of a narrow patch, and shows their effect to later reads.
type editor struct {
	root map[string]any
	ops  []patchOp
}

func edit(raw []byte) (*editor, error) {
	e := &editor{}
	if err := json.Unmarshal(raw, &e.root); err != nil {
		return nil, err
	}
	return e, nil
}

// editing serves a webhook that works on an editor.
func editing(mutate func(*admissionv1.AdmissionRequest, *editor) error) http.Handler {
	return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
		e, err := edit(r.Object.Raw)
		if err != nil {
			return nil, err
		}
		if err := mutate(r, e); err != nil {
			return nil, err
		}
		return operations(e.ops)
	})
}

// runtimeStyle serves a handler of controller-runtime.
func runtimeStyle(handle func(context.Context, admission.Request) admission.Response) http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(handle)}
}

func pointerTo(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteString("/" + escape(key))
	}
	return b.String()
}

func jsonValue(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

// get returns what is at the path, or nil.
func (e *editor) get(path ...string) any {
	var at any = e.root
	for _, key := range path {
		switch node := at.(type) {
		case map[string]any:
			at = node[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(node) {
				return nil
			}
			at = node[n]
		default:
			return nil
		}
	}
	return at
}

// set writes a value. A map on the way that is absent or null is added, once.
func (e *editor) set(value any, path ...string) {
	var at any = e.root
	for i, key := range path {
		last := i == len(path)-1
		switch node := at.(type) {
		case map[string]any:
			if last || node[key] == nil {
				value = jsonValue(value)
				for j := len(path) - 1; j > i; j-- {
					value = map[string]any{path[j]: value}
				}
				node[key] = value
				e.ops = append(e.ops, patchOp{Op: "add", Path: pointerTo(path[:i+1]), Value: jsonValue(value)})
				return
			}
			at = node[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(node) {
				return
			}
			if last {
				node[n] = jsonValue(value)
				e.ops = append(e.ops, patchOp{Op: "replace", Path: pointerTo(path), Value: value})
				return
			}
			at = node[n]
		default:
			return
		}
	}
}

// push appends to a list, which may be absent or null.
func (e *editor) push(value any, path ...string) {
	list, _ := e.get(path...).([]any)
	if list == nil {
		e.set([]any{value}, path...)
		return
	}
	ops := e.ops
	e.set(append(append([]any{}, list...), value), path...)
	e.ops = append(slices.Clip(ops), patchOp{Op: "add", Path: pointerTo(path) + "/-", Value: value})
}

// drop removes a key of a map.
func (e *editor) drop(path ...string) {
	parent, _ := e.get(path[:len(path)-1]...).(map[string]any)
	if _, there := parent[path[len(path)-1]]; there {
		delete(parent, path[len(path)-1])
		e.ops = append(e.ops, patchOp{Op: "remove", Path: pointerTo(path)})
	}
}

func under(path []string, more ...string) []string {
	return append(append([]string{}, path...), more...)
}

func index(i int) string { return strconv.Itoa(i) }

var templateSpec = []string{"spec", "template", "spec"}

// reach reads through maps and lists in a proof.
func reach(object map[string]any, path ...string) any {
	return (&editor{root: object}).get(path...)
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// crdOf returns a CustomResourceDefinition with one version; schema is the YAML of the properties of an object,
// indented by 12 blanks.
func crdOf(group, version, kind, plural, schema string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[4]s.%[1]s
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[4]s, singular: %[5]s}
  versions:
    - name: %[2]s
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
%[6]s
`, group, version, kind, plural, strings.ToLower(kind), strings.Trim(schema, "\n"))
}
