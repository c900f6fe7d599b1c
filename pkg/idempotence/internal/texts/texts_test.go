// SPDX-License-Identifier: Apache-2.0

package texts

import (
	"slices"
	"testing"
)

// TestShared requires that the format is recognised in a text that has an item of another party and items of a webhook.
func TestShared(t *testing.T) {
	for _, c := range []struct {
		token, after string
		want         Format
		ok           bool
	}{
		{"rival", "rival,agent", ",", true},
		{"rival", "agent, rival", ",", true},
		{"-rival", "-rival -agent", " ", true},
		{"/rival", "/agent:/rival", ":", true},
		{"rival=on\n", "rival=on\nagent=on\n", "", false}, // items have no line end
		{"rival", "agent", "", false},
		{"rival", "rival", "", false},
		{"rival", "rivals,agent", "", false},
	} {
		if f, ok := Shared(c.token, c.after); f != c.want && c.ok || ok != c.ok {
			t.Errorf("Shared(%q, %q) = %q, %v", c.token, c.after, f, ok)
		}
	}
}

// TestEqualFormsAreEqual requires that all other forms of a text have the same items or the same value.
func TestEqualFormsAreEqual(t *testing.T) {
	for _, c := range []struct {
		format Format
		text   string
		forms  int
	}{
		{",", "a,b", 2}, {" ", "-a -b", 2}, {"\n", "a=1\nb=2\n", 1}, {":", "/a:/b", 0},
		{JSON, `{"a":[{"name":"x"}],"b":1}`, 2}, {YAML, "b: 1\na:\n- name: x\n", 2},
		{Quantity, "1024Mi", 2}, {Quantity, "500m", 1}, {Duration, "60s", 1}, {Duration, "1m", 2},
		{Image, "nginx", 2}, {Image, "docker.io/library/nginx:1", 1}, {Image, "localhost:5000/app:1", 0},
	} {
		forms := c.format.Equal(c.text)
		if len(forms) != c.forms {
			t.Errorf("%s has the forms %q", c.text, forms)
		}
		for _, form := range forms {
			if same := c.format.Same(c.text, form); form == c.text || !c.format.IsList() && !same {
				t.Errorf("%q is not another form of %q", form, c.text)
			}
			if c.format.IsList() && !slices.Equal(c.format.Items(form), c.format.Items(c.text)) {
				t.Errorf("%q has other items than %q", form, c.text)
			}
		}
	}
}

// TestOtherNetworks checks the JSON form of a list of networks, as Multus reads it.
func TestOtherNetworks(t *testing.T) {
	const list, want = "infra/backup@net1, storage", `[{"interface":"net1","name":"backup","namespace":"infra"},{"name":"storage"}]`
	if got := Networks.Equal(list); !slices.Equal(got, []string{want}) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Networks.Equal(want); got != nil {
		t.Errorf("%q, want nothing", got)
	}
	if !Networks.Same(list, want) || Networks.Same(list, want+",storage") || Networks.Same(list, "storage") {
		t.Error("the two forms must be the same, and others must not")
	}
}

// TestAmbiguousUnits requires that the name decides whether a text is a quantity or a duration.
func TestAmbiguousUnits(t *testing.T) {
	for name, want := range map[string]Format{"agent.io/cpu-limit": Quantity, "agent.io/timeout": Duration, "agent.io/mode": ""} {
		if f, ok := Scalar(name, "5m"); f != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", name, f, ok)
		}
	}
}

// TestWith requires that With adds an item and keeps all others.
func TestWith(t *testing.T) {
	for _, c := range []struct {
		format     Format
		text, item string
		want       string
	}{
		{",", "", "rival", "rival"}, {",", "a", "rival", "a,rival"}, {"\n", "a=1\n", "rival=1", "a=1\nrival=1\n"},
		{JSON, `["a"]`, `["rival"]`, `["a","rival"]`},
		{JSON, `{"list":[{"name":"a"}],"mode":"x"}`, `{"list":[{"name":"rival"}],"mode":"y","more":1}`, `{"list":[{"name":"a"},{"name":"rival"}],"mode":"x","more":1}`},
		{YAML, "a: 1\n", `{"rival":2}`, "a: 1\nrival: 2\n"},
		{Query, "https://example.com/a", "x=1", "https://example.com/a?x=1"},
		{Query, "https://example.com/a?x=1", "y=2", "https://example.com/a?x=1&y=2"},
	} {
		if got := c.format.With(c.text, c.item, false); got != c.want {
			t.Errorf("With(%q, %q) = %q, want %q", c.text, c.item, got, c.want)
		}
	}
	if got := Format(",").With("a", "rival", true); got != "rival,a" {
		t.Errorf("at the front: %q", got)
	}
}

// TestGrownQuery requires that Grown recognises a URL with a further query parameter.
func TestGrownQuery(t *testing.T) {
	const url = "https://logs.example.com/in"
	for after, want := range map[string]Format{
		url + "?team=pay": Query, url + "?a=1&team=pay": Query, url: "", "https://logs.example.com/out": "", url + "/v2": "",
	} {
		if f, ok := Grown(url, after); ok != (want != "") || ok && f != want {
			t.Errorf("Grown(%q, %q) = %q, %v, want %q", url, after, f, ok, want)
		}
	}
	if item := Query.Repeated(url+"?team=pay&region=eu", url+"?team=pay&region=eu?team=pay"); item != "team=pay" {
		t.Errorf("Repeated returns %q", item)
	}
}

// TestFlag requires that the format of an argument works like that of its value.
func TestFlag(t *testing.T) {
	f := Format("--config=") + JSON
	if got := f.With(`["a"]`, `["b"]`, false); got != `["a","b"]` || !f.IsDocument() || f.Flag() != "--config=" {
		t.Errorf("%q, %v, %q", got, f.IsDocument(), f.Flag())
	}
}
