// SPDX-License-Identifier: Apache-2.0

// Package quality compares the patches that several libraries generate for the same edits.
package quality

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Ratings of a patch.
const (
	Right   = "right"
	Refused = "refused"        // the tool returns an error
	Invalid = "does not apply" // the API server would reject the request
	Other   = "another Pod"    // the result differs from the expected Pod in known fields
	Lost    = "field lost"     // the result lacks a field that the Go types lack
	Moved   = "field moved"    // a field that the Go types lack is in another element
)

// A Result rates the patch of one tool for one edit.
type Result struct {
	Edit       string
	Newer      bool // the document has fields that the Go types lack
	Tool       string
	Operations int
	Bytes      int
	Spurious   int // operations that are outside of the edit or change nothing
	Verdict    string
	Patch      string
}

// Tools returns the names of the tools, admitkit first.
func Tools() []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// Compare generates a patch with every tool for every edit and for two documents: one that has only fields
// of the Go types, and one from a newer API server.
func Compare() ([]Result, error) {
	var results []Result
	for _, newer := range []bool{false, true} {
		for i := range edits {
			for _, t := range tools {
				r, err := judge(&edits[i], newer, t)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", edits[i].name, t.name, err)
				}
				results = append(results, r)
			}
		}
	}
	return results, nil
}

// judge rates the patch of one tool for one edit.
func judge(e *edit, newer bool, t tool) (Result, error) {
	raw := e.pod(newer)
	r := Result{Edit: e.name, Newer: newer, Tool: t.name}
	text, err := t.patch(raw, func(pod *corev1.Pod) {
		if e.typed != nil {
			e.typed(pod)
		}
	})
	if err != nil {
		r.Verdict = Refused
		return r, nil
	}
	var ops []operation
	if len(text) > 0 {
		if err := json.Unmarshal(text, &ops); err != nil {
			return r, err
		}
	}
	r.Operations, r.Bytes, r.Patch = len(ops), len(text), string(text)
	wanted := e.result(raw)
	patched := raw
	if len(ops) > 0 {
		p, err := jsonpatch.DecodePatch(text)
		if err != nil {
			return r, err
		}
		if patched, err = p.Apply(raw); err != nil {
			r.Verdict = Invalid
			return r, nil
		}
	}
	r.Spurious = spurious(decoded(raw), wanted, ops)
	r.Verdict, err = verdict(decoded(patched), wanted)
	return r, err
}

// result returns the expected document after the edit.
func (e *edit) result(raw []byte) any {
	tree := decoded(raw)
	if e.wanted != nil {
		e.wanted(at(tree, "metadata"), at(tree, "spec"))
	}
	return tree
}

func decoded(doc []byte) map[string]any {
	var tree map[string]any
	if err := json.Unmarshal(doc, &tree); err != nil {
		panic(err)
	}
	return tree
}

// verdict rates the result of a patch.
func verdict(got, want any) (string, error) {
	gotPod, err := typed(got)
	if err != nil {
		return "", err
	}
	wantPod, err := typed(want)
	if err != nil {
		return "", err
	}
	if !equality.Semantic.DeepEqual(gotPod, wantPod) {
		return Other, nil
	}
	gotFields, wantFields := map[string]string{}, map[string]string{}
	unknownFields(got, "", gotFields)
	unknownFields(want, "", wantFields)
	verdict := Right
	for value, path := range wantFields {
		switch gotFields[value] {
		case path:
		case "":
			return Lost, nil
		default:
			verdict = Moved
		}
	}
	return verdict, nil
}

func typed(tree any) (*corev1.Pod, error) {
	doc, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	pod := new(corev1.Pod)
	return pod, json.Unmarshal(doc, pod)
}

// unknownFields stores in found the paths of the fields that addUnknown added, by their values.
func unknownFields(v any, path string, found map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if text, isText := member.(string); isText && name == unknown {
				found[text] = path
			}
			unknownFields(member, path+"/"+name, found)
		}
	case []any:
		for i := range v {
			unknownFields(v[i], fmt.Sprintf("%s/%d", path, i), found)
		}
	}
}
