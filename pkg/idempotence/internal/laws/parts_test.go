// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// TestLeftOut compares the result for an object that had a part already with the result for an object without it. An
// element must not count as left out if another one has the same name.
func TestLeftOut(t *testing.T) {
	const before, plain = `{"spec":{"rules":[]}}`, `{"spec":{"rules":[{"name":"a","on":"failure"}]}}`
	for result, want := range map[string]string{
		`{"spec":{"rules":[{"name":"a","on":"failure"}]}}`:                       "",
		`{"spec":{"rules":[{"name":"a","on":"failure"},{"name":"a","on":"x"}]}}`: "",
		`{"spec":{"rules":[{"name":"a","on":"x"},{"name":"a","on":"y"}]}}`:       "",
		`{"spec":{"rules":[{"name":"b","on":"x"},{"name":"b","on":"y"}]}}`:       "spec.rules[name=a]",
		`{"spec":{"rules":[]}}`: "spec.rules[name=a]",
	} {
		outcomeOf := func(text string) *session.Outcome { return session.Admitted(&objects.Object{Doc: parsed(t, text)}) }
		all := partsThere{NewTrial(nil, Options{})}.leftOut(L5, outcomeOf(before).After, outcomeOf(plain), outcomeOf(result))
		got := ""
		for _, c := range all {
			got += c.Path.String()
		}
		if got != want {
			t.Errorf("%s: %q is left out, want %q", result, got, want)
		}
	}
}

// TestNotesOfOther sets annotations before the first call. If the webhook then leaves out only annotations with the same
// prefix, the user has taken over the settings of another program.
func TestNotesOfOther(t *testing.T) {
	note := func(key string) tree.Path { return tree.Path{{Name: "metadata"}, {Name: "annotations"}, {Name: key}} }
	replicas := tree.Path{{Name: "spec"}, {Name: "replicas"}}
	for name, tc := range map[string]struct {
		set, left []tree.Path
		want      bool
	}{
		"settings of one program":        {[]tree.Path{note("prometheus.io/port")}, []tree.Path{note("prometheus.io/path"), note("prometheus.io/scrape")}, true},
		"a mark of the webhook":          {[]tree.Path{note("inject.example.com/done")}, []tree.Path{note("inject.example.com/version")}, false},
		"settings of two programs":       {[]tree.Path{note("prometheus.io/port")}, []tree.Path{note("datadog.com/path")}, false},
		"an annotation without a prefix": {[]tree.Path{note("port")}, []tree.Path{note("path")}, false},
		"a field is left out, too":       {[]tree.Path{note("prometheus.io/port")}, []tree.Path{note("prometheus.io/path"), replicas}, false},
		"a field was set, too":           {[]tree.Path{note("prometheus.io/port"), replicas}, []tree.Path{note("prometheus.io/path")}, true},
		"only a field was set":           {[]tree.Path{replicas}, []tree.Path{note("prometheus.io/path")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var c Case
			for _, p := range tc.set {
				c.Edits = append(c.Edits, edits.Edit{What: edits.Put, Path: p, Value: "1"})
			}
			var left []tree.Change
			for _, p := range tc.left {
				left = append(left, tree.Change{Kind: tree.Added, Path: p, New: "1"})
			}
			of := &session.Session{Webhooks: []*session.Webhook{{MutatingWebhook: admissionregistrationv1.MutatingWebhook{Name: "pods.example.com"}}}}
			l := partsThere{NewTrial(of, Options{})}
			if got := l.areNotesOfOther(&c, left); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestInOneList sets a text in a list for which the webhook has a default. Only if the list had no elements before, the
// author chose all of them.
func TestInOneList(t *testing.T) {
	list := tree.Path{{Name: "spec"}, {Name: "allowed"}}
	missing := tree.Change{Kind: tree.Added, Path: list.Element("::/0", 0), New: "::/0"}
	c := &Case{Edits: []edits.Edit{{What: edits.Insert, Path: list, Value: "0.0.0.0/0"}}}
	for before, want := range map[string]bool{
		`{"spec":{}}`:                         true,
		`{"spec":{"allowed":[]}}`:             true,
		`{"spec":{"allowed":["10.0.0.0/8"]}}`: false,
	} {
		if got := inOneList(c, &objects.Object{Doc: parsed(t, before)}, missing); got != want {
			t.Errorf("%s: got %t", before, got)
		}
	}
}
