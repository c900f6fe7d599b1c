// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestMatchesGlob(t *testing.T) {
	creds := list("volumes").Element("name=creds-x7k2p", 0)
	for _, tc := range []struct {
		path    Path
		pattern string
		want    bool
	}{
		{creds, "spec.volumes[name=creds-*]", true},
		{creds.Member("secret"), "spec.volumes[name=creds-*]", true},
		{creds, "spec.volumes[name=*-x7k2p]", true},
		{creds, "spec.volumes[name=c*s-*k2p]", true},
		{creds, "spec.volumes[*]", true},
		{creds, "spec.volumes[name=creds-x7k2p]", true},
		{creds, "spec.volumes[name=token-*]", false},
		{creds, "spec.volumes[name=creds]", false},
		{creds, "spec.volumes[name=creds-*-old]", false},
		{creds, "spec.volumes[name=creds-x7k2p*k2p]", false}, // the prefix and the suffix overlap
		{list("volumes"), "spec.volumes[name=creds-*]", false},
		{Path{}.Member("spec").Member("volumes"), "spec.vol*", false}, // only keys of elements have globs
		{Path{}.Member("metadata").Member("annotations").Member("example.com/a"), "metadata.annotations[example.com/*]", false},
	} {
		if got := tc.path.Matches(tc.pattern); got != tc.want {
			t.Errorf("%s matches %s: %v", tc.path, tc.pattern, got)
		}
	}
	if !list("volumes").LeadsTo("spec.volumes[name=creds-*].secret") || !creds.LeadsTo("spec.volumes[name=creds-*].secret") {
		t.Error("a pattern with a glob leads nowhere")
	}
}

func TestAt(t *testing.T) {
	doc := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a/b~c": "1"}}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "a", "args": []any{"x", "y", "x"}}, map[string]any{"name": "b", "image": "i"}},
	}}
	for pointer, want := range map[string]string{
		"/metadata/annotations/a~1b~0c": "metadata.annotations[a/b~c]",
		"/spec/containers/0/name":       "spec.containers[name=a].name",
		"/spec/containers/0/args/0":     `spec.containers[name=a].args["x"]`,
		"/spec/containers/0/args/1":     `spec.containers[name=a].args["y"]`,
		"/spec/containers/0/args/2":     `spec.containers[name=a].args["x"#2]`,
		"/spec/containers/1/image":      "spec.containers[name=b].image",
		"":                              "", "/spec/new": "spec.new", "/spec/containers/-": "spec.containers.-", "/spec/containers/7/name": "spec.containers.7.name",
	} {
		path := At(doc, pointer)
		if got := path.String(); got != want {
			t.Errorf("%q leads to %q, not to %q", pointer, got, want)
		}
		if exists := !strings.HasSuffix(pointer, "new") && !strings.Contains(pointer, "-") && !strings.Contains(pointer, "7"); Has(doc, path) != exists {
			t.Errorf("%s: the document has it: %v", path, !exists)
		}
	}
}

// TestGlobAgreesWithRegexp compares random globs and texts with a regular expression.
func TestGlobAgreesWithRegexp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	text := func(letters string) string {
		var b strings.Builder
		for range random.IntN(8) {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	matched := 0
	for range 20_000 {
		glob, key := text("ab**"), text("ab")
		want := regexp.MustCompile("^" + strings.ReplaceAll(glob, "*", ".*") + "$").MatchString(key)
		if got := matchGlob(glob, key); got != want {
			t.Fatalf("%q matches %q: %v, want %v", glob, key, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d of the pairs match", matched)
	}
}
