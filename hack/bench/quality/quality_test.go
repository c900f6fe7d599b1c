// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func TestBothFormsOfAnEditAgree(t *testing.T) {
	for i := range edits {
		e := &edits[i]
		raw := e.pod(true)
		var pod corev1.Pod
		if err := json.Unmarshal(raw, &pod); err != nil {
			t.Fatal(err)
		}
		if e.typed != nil {
			e.typed(&pod)
		}
		want, err := typed(e.result(raw))
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(&pod, want) {
			t.Errorf("%s: the two forms of the edit have different results", e.name)
		}
	}
}

func TestPatchesOfAdmitkitAreRight(t *testing.T) {
	results, err := Compare()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Tool == "admitkit" && (r.Verdict != Right || r.Spurious > 0) {
			t.Errorf("%s: %s, with %d spurious operations: %s", r.Edit, r.Verdict, r.Spurious, r.Patch)
		}
	}
}

func TestSpuriousCountsOperationsOutsideOfTheEdit(t *testing.T) {
	const before = `{"labels":null,"map":{"a":1},"list":[{"name":"x","v":1,"zz":1},{"name":"y","v":2}]}`
	for _, in := range []struct {
		reason, wanted, patch string
		want                  int
	}{
		{"the edit itself", `{"labels":{"t":"r"},"map":{"a":1},"list":[{"name":"x","v":1,"zz":1},{"name":"y","v":2}]}`,
			`[{"op":"replace","path":"/labels","value":{"t":"r"}}]`, 0},
		{"no change", before, `[{"op":"replace","path":"/map/a","value":1}]`, 1},
		{"a new member that the edit does not add", before, `[{"op":"add","path":"/status","value":{}}]`, 1},
		{"the whole parent, which loses nothing", `{"labels":null,"map":{"a":2},"list":[{"name":"x","v":1,"zz":1},{"name":"y","v":2}]}`,
			`[{"op":"replace","path":"/map","value":{"a":2}}]`, 0},
		{"the whole parent, which loses a field", `{"labels":null,"map":{"a":1},"list":[{"name":"x","v":3,"zz":1},{"name":"y","v":2}]}`,
			`[{"op":"replace","path":"/list/0","value":{"name":"x","v":3}}]`, 1},
		{"inserted before others", `{"labels":null,"map":{"a":1},"list":[{"name":"n","v":0},{"name":"x","v":1,"zz":1},{"name":"y","v":2}]}`,
			`[{"op":"add","path":"/list/0","value":{"name":"n","v":0,"empty":{}}}]`, 0},
		{"values written over other elements", `{"labels":null,"map":{"a":1},"list":[{"name":"n","v":0},{"name":"x","v":1,"zz":1},{"name":"y","v":2}]}`,
			`[{"op":"add","path":"/list/-","value":{"name":"y","v":2}},{"op":"replace","path":"/list/0/name","value":"n"},
			{"op":"replace","path":"/list/0/v","value":0},{"op":"replace","path":"/list/1/name","value":"x"}]`, 4},
		{"moved", `{"labels":null,"map":{"a":1},"list":[{"name":"y","v":2},{"name":"x","v":1,"zz":1}]}`,
			`[{"op":"move","from":"/list/1","path":"/list/0"}]`, 0},
		{"moved forth and back", before, `[{"op":"move","from":"/list/1","path":"/list/0"},{"op":"move","from":"/list/1","path":"/list/0"}]`, 2},
		{"moved, then edited", `{"labels":null,"map":{"a":1},"list":[{"name":"y","v":3},{"name":"x","v":1,"zz":1}]}`,
			`[{"op":"move","from":"/list/1","path":"/list/0"},{"op":"replace","path":"/list/0/v","value":3}]`, 0},
		{"removed", `{"labels":null,"map":{"a":1},"list":[{"name":"y","v":2}]}`, `[{"op":"remove","path":"/list/0"}]`, 0},
		{"the wrong element removed", `{"labels":null,"map":{"a":1},"list":[{"name":"y","v":2}]}`, `[{"op":"remove","path":"/list/1"}]`, 1},
	} {
		var ops []operation
		if err := json.Unmarshal([]byte(in.patch), &ops); err != nil {
			t.Fatal(err)
		}
		if got := spurious(decoded([]byte(before)), decoded([]byte(in.wanted)), ops); got != in.want {
			t.Errorf("%s: %d spurious operations, want %d", in.reason, got, in.want)
		}
	}
}
