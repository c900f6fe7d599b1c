// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

func TestExceptionsCoverParents(t *testing.T) {
	const base = `{"metadata":{"name":"a"},"spec":{}}`
	for name, tc := range map[string]struct {
		pattern, from, to string
		intended          bool
	}{
		"the map that the key makes":    {"metadata.annotations[at]", base, `{"metadata":{"name":"a","annotations":{"at":"1"}},"spec":{}}`, true},
		"the map with another key":      {"metadata.annotations[at]", base, `{"metadata":{"name":"a","annotations":{"at":"1","b":"2"}},"spec":{}}`, false},
		"the map that empties":          {"metadata.annotations[at]", `{"metadata":{"name":"a","annotations":{"at":"1"}},"spec":{}}`, base, true},
		"a map of nothing":              {"metadata.annotations[at]", `{"metadata":{"name":"a","annotations":{}},"spec":{}}`, base, true},
		"another map of nothing":        {"metadata.labels[at]", `{"metadata":{"name":"a","annotations":{}},"spec":{}}`, base, false},
		"the list that empties":         {"spec.volumes[name=old]", `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"old"}]}}`, base, true},
		"the list with another element": {"spec.volumes[name=old]", `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"old"},{"name":"new"}]}}`, base, false},
		"a value in a new element":      {"spec.volumes[*].size", base, `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"old","size":1}]}}`, false},
		"a new element of a family":     {"spec.volumes[name=creds-*]", base, `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"creds-x7k2p"}]}}`, true},
		"an element of another family":  {"spec.volumes[name=creds-*]", base, `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"token-x7k2p"}]}}`, false},
		"an element that moves":         {"spec.volumes[name=old]", `{"spec":{"volumes":[{"name":"old"},{"name":"a"},{"name":"b"}]}}`, `{"spec":{"volumes":[{"name":"a"},{"name":"b"},{"name":"old"}]}}`, true},
		"others that move":              {"spec.volumes[name=old]", `{"spec":{"volumes":[{"name":"old"},{"name":"a"},{"name":"b"}]}}`, `{"spec":{"volumes":[{"name":"b"},{"name":"a"},{"name":"old"}]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := NewTrial(nil, Options{Exceptions: []Exception{{Path: tc.pattern}}})
			changes := tree.Changes(parsed(t, tc.from), parsed(t, tc.to))
			if len(changes) != 1 {
				t.Fatalf("%d changes: %v", len(changes), changes)
			}
			if got := k.intended(L1, changes[0]); got != tc.intended {
				t.Errorf("%s %s: intended %v", changes[0].Kind, changes[0].Path, got)
			}
			if needed := k.Needed(0); needed != tc.intended {
				t.Errorf("the exception was needed: %v", needed)
			}
		})
	}
}

// TestExceptionIsNeededIfThePartIsMissing declares an exception for an annotation. It must count as needed only if the
// result lacks the annotation.
func TestExceptionIsNeededIfThePartIsMissing(t *testing.T) {
	const plain, whole = `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","annotations":{"at":"1"}}}`
	for result, missing := range map[string]bool{whole: false, plain: true} {
		k := NewTrial(nil, Options{Exceptions: []Exception{{Path: "metadata.annotations[at]"}}})
		outcomeOf := func(text string) *session.Outcome {
			return session.Admitted(&objects.Object{Doc: parsed(t, text)})
		}
		if all := (partsThere{k}).leftOut(L5, outcomeOf(plain).After, outcomeOf(whole), outcomeOf(result)); len(all) > 0 || k.Needed(0) != missing {
			t.Errorf("%s: left out %v, needed %v", result, all, k.Needed(0))
		}
	}
}
