// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/patch"
)

type labelled struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

type itself *itself

// odd has kinds of fields that few types have.
type odd struct {
	Float float64      `json:"float,omitempty"`
	Keyed []labelled   `json:"keyed" patchMergeKey:"name"`
	Time  *metav1.Time `json:"time,omitzero"`
	Self  itself       `json:"self,omitempty"`
}

func TestOddCases(t *testing.T) {
	for _, row := range []struct {
		reason, raw string
		change      func(*odd)
		want        string
	}{
		{"a time that is zero, left alone", `{"float":0,"keyed":[],"time":"0001-01-01T00:00:00Z"}`, func(*odd) {}, `[]`},
		{"a pointer to itself", `{"keyed":[],"self":null}`, func(*odd) {}, `[]`},
		{"minus zero becomes one", `{"float":-0.0,"keyed":[]}`, func(o *odd) { o.Float = 1 }, `[{"op":"replace","path":"/float","value":1}]`},
		{"all elements of a keyed list are removed", `{"keyed":[{"name":"a"},{"name":"b"}]}`, func(o *odd) { o.Keyed = []labelled{} }, `[{"op":"replace","path":"/keyed","value":[]}]`},
		{
			"an element with a duplicate name is removed, its key last",
			`{"keyed":[{"labels":{"x":"1","x":"2"},"name":"a"},{"name":"b","labels":{"x":"2","y":"3"}}]}`,
			func(o *odd) { o.Keyed = o.Keyed[1:] }, `[{"op":"remove","path":"/keyed/0"}]`,
		},
		{
			"an element with a duplicate name is removed, its key first",
			`{"keyed":[{"name":"a","labels":{"x":"1","x":"2"}},{"name":"b","labels":{"x":"2","y":"3"}}]}`,
			func(o *odd) { o.Keyed = o.Keyed[1:] }, `[{"op":"remove","path":"/keyed/0"}]`,
		},
	} {
		var o odd
		if err := json.Unmarshal([]byte(row.raw), &o); err != nil {
			t.Fatal(err)
		}
		row.change(&o)
		p, err := patch.Diff([]byte(row.raw), &o)
		if got := string(p.AppendJSON(nil)); err != nil || got != row.want {
			t.Errorf("%s: got %s and error %v, want %s", row.reason, got, err, row.want)
		}
	}
	var minus struct {
		Float float64 `json:"float"`
	}
	if p, err := patch.Diff([]byte(`{"float":-0.0}`), &minus); err != nil || len(p) != 1 || string(p[0].Value) != "0" {
		t.Errorf("minus zero becomes zero: got %s and error %v", p.AppendJSON(nil), err)
	}
}
