// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// over returns a call of the path /a.
func over(o webhook.Observation) *ended { return &ended{Observation: &o, path: "/a"} }

func patched(operations string) *ended {
	return &ended{path: "/a", Observation: &webhook.Observation{Outcome: webhook.Mutated}, answer: fmt.Appendf(nil, `{"response":{"patchType":"JSONPatch", "patch" : "%s"}}`,
		base64.StdEncoding.EncodeToString([]byte(operations)))}
}

// TestCombinations requires that calls are alike exactly if they should be.
func TestCombinations(t *testing.T) {
	s := newSampler(&Options{}, time.Now())
	kind := func(name string) metav1.GroupVersionKind { return metav1.GroupVersionKind{Version: "v1", Kind: name} }
	alike := func(a, b *ended) bool { return s.combination(a) == s.combination(b) }
	for _, in := range []struct {
		reason string
		a, b   *ended
		alike  bool
	}{
		{"names do not count", over(webhook.Observation{Name: "a", UID: "1", BodyBytes: 5}), over(webhook.Observation{Name: "b", UID: "2"}), true},
		{"the hook", over(webhook.Observation{Hook: "a"}), over(webhook.Observation{Hook: "b"}), false},
		{"the kind", over(webhook.Observation{Kind: kind("A")}), over(webhook.Observation{Kind: kind("B")}), false},
		{"the operation", over(webhook.Observation{Operation: admissionv1.Create}), over(webhook.Observation{Operation: admissionv1.Update}), false},
		{"the outcome", over(webhook.Observation{Outcome: webhook.Allowed}), over(webhook.Observation{Outcome: webhook.Denied}), false},
		{"the outcome that was withheld", over(webhook.Observation{}), over(webhook.Observation{Withheld: webhook.Denied}), false},
		{"the code", over(webhook.Observation{Code: 403}), over(webhook.Observation{Code: 422}), false},
		{"a dry run", over(webhook.Observation{}), over(webhook.Observation{DryRun: true}), false},
		{"the values of a patch do not count", patched(`[{"op":"add","path":"/a","value":1}]`), patched(`[{"op":"add","path":"/a","value":{"b":2}}]`), true},
		{"the paths of a patch", patched(`[{"op":"add","path":"/a","value":1}]`), patched(`[{"op":"add","path":"/b","value":1}]`), false},
		{"the operations of a patch", patched(`[{"op":"add","path":"/a","value":1}]`), patched(`[{"op":"replace","path":"/a","value":1}]`), false},
		{"indices do not count", patched(`[{"op":"remove","path":"/a/0/b"}]`), patched(`[{"op":"remove","path":"/a/17/b"}]`), true},
		{"nor how many there are", patched(`[{"op":"remove","path":"/a/0"}]`), patched(`[{"op":"remove","path":"/a/2"},{"op":"remove","path":"/a/1"}]`), true},
		{"nor the order", patched(`[{"op":"remove","path":"/a"},{"op":"remove","path":"/b"}]`), patched(`[{"op":"remove","path":"/b"},{"op":"remove","path":"/a"}]`), true},
		{"a patch and a longer one", patched(`[{"op":"remove","path":"/a"}]`), patched(`[{"op":"remove","path":"/a"},{"op":"remove","path":"/b"}]`), false},
		{"a patch that is not JSON", patched(`[{"op":"remove","path":"/a"}]`), patched(`no`), false},
	} {
		if got := alike(in.a, in.b); got != in.alike {
			t.Errorf("%s: alike is %v", in.reason, got)
		}
	}
	if b := (&ended{path: "/b", Observation: &webhook.Observation{}}); alike(over(webhook.Observation{}), b) {
		t.Error("calls of two paths are alike")
	}
}

// TestChoose requires that novel calls are recorded whatever the rate is, and others by the rate and the limit.
func TestChoose(t *testing.T) {
	now := time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
	count := func(s *sampler, calls, size int, o *ended) (novel, byChance int) {
		for range calls {
			switch why, _ := s.choose(o, size, now); why {
			case asNovel:
				novel++
			case byRate:
				byChance++
			case skip:
			}
		}
		return novel, byChance
	}
	s := newSampler(&Options{Rate: -1}, now)
	for _, code := range []int32{200, 403, 422} {
		if novel, others := count(s, 100, 10, over(webhook.Observation{Code: code})); novel != defaultNovel || others != 0 {
			t.Errorf("code %d: %d novel, %d others", code, novel, others)
		}
	}
	s.forget()
	if novel, _ := count(s, 100, 10, over(webhook.Observation{Code: 403})); novel != defaultNovel {
		t.Errorf("%d are novel again", novel)
	}
	s.undo(asNovel, s.combination(over(webhook.Observation{Code: 403})))
	if novel, _ := count(s, 100, 10, over(webhook.Observation{Code: 403})); novel != 1 {
		t.Errorf("%d are novel instead of the dropped one", novel)
	}

	s = newSampler(&Options{Rate: 0.2, Novel: -1}, now)
	if novel, others := count(s, 10_000, 10, over(webhook.Observation{})); novel != 0 || others < 1700 || others > 2300 {
		t.Errorf("%d novel, %d others", novel, others)
	}

	s = newSampler(&Options{MaxBytesPerSecond: 1000, Novel: -1}, now)
	if _, others := count(s, 100, 100, over(webhook.Observation{})); others != 10 { // the burst
		t.Errorf("%d at once", others)
	}
	for range 10 {
		now = now.Add(time.Second)
		if _, others := count(s, 100, 100, over(webhook.Observation{})); others != 10 {
			t.Errorf("%d in a second", others)
		}
	}
	now = now.Add(time.Hour)
	if _, others := count(s, 5, 1<<20, over(webhook.Observation{})); others != 1 {
		t.Errorf("%d large calls", others)
	}

	s = newSampler(&Options{Rate: -1}, now)
	for code := range int32(maxCombinations + 1000) {
		count(s, 1, 10, over(webhook.Observation{Code: code}))
	}
	if len(s.seen) != maxCombinations {
		t.Errorf("%d combinations are remembered", len(s.seen))
	}
}

// FuzzPatchShape requires that no answer makes the sampler fail.
func FuzzPatchShape(f *testing.F) {
	for _, text := range []string{`[{"op":"add","path":"/a/0","value":1}]`, `[`, `[{"op":1,"path":null}]`, ``} {
		f.Add([]byte(text))
		f.Add(patched(text).answer)
	}
	s := newSampler(&Options{}, time.Now())
	f.Fuzz(func(t *testing.T, answer []byte) {
		first := s.patchShape(answer)
		if s.patchShape(answer) != first {
			t.Error("the shape changes")
		}
		own := patched(string(answer))
		s.patchShape(own.answer)
	})
}
