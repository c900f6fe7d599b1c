// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"os"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

func readCRD(t testing.TB, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		t.Fatal(err)
	}
	return &crd
}

func crdGenerator(t testing.TB, name string) *Generator {
	t.Helper()
	s, err := ForCRD(readCRD(t, name), "v1")
	if err != nil {
		t.Fatal(err)
	}
	return &Generator{Schema: s, Namespace: "default"}
}

func TestCustomResourcesAreValid(t *testing.T) {
	g := crdGenerator(t, "widgets")
	count := map[string]int{}
	var sizes int
	for seed := range uint64(seeds) {
		r := source(seed)
		o, traits := g.Object(r, nil)
		if errs := g.Schema.check(o); len(errs) > 0 {
			t.Fatalf("seed %d, traits %v: %v\n%s", seed, traits, errs, tree.Encode(o))
		}
		for _, name := range traits {
			count[name]++
		}
		sizes += len(o["spec"].(object))
		more, _ := g.Object(r, o)
		if errs := g.Schema.check(more); len(errs) > 0 {
			t.Fatalf("seed %d, with the first as sample: %v\n%s", seed, errs, tree.Encode(more))
		}
		for _, at := range g.Places(o) {
			if r.IntN(4) > 0 {
				continue
			}
			a, ok := g.Addition(r, o, at)
			if !ok {
				continue
			}
			with, _ := a.Apply(o)
			if errs := g.Schema.check(with); len(errs) > 0 || tree.Equal(with, o) {
				t.Fatalf("seed %d, adding to %s: %v\n%s", seed, at, errs, tree.Encode(with))
			}
			count["added to "+at[len(at)-1].Name]++
		}
	}
	for _, name := range append(g.Traits(), "added to zones", "added to ports", "added to labels", "added to settings", "added to steps") {
		if count[name] == 0 {
			t.Errorf("none has %q", name)
		}
	}
	if sizes < 4*seeds {
		t.Errorf("the specs have %d members in all: too few", sizes)
	}
}

// TestCustomResourcesHaveEveryMember checks that each member of the schema, and each value of its enums, appears in a
// generated object.
func TestCustomResourcesHaveEveryMember(t *testing.T) {
	g := crdGenerator(t, "widgets")
	seen := map[string]bool{}
	for seed := range uint64(seeds) {
		o, _ := g.Object(source(seed), nil)
		note(seen, g.Schema.root.member("spec"), o["spec"], "spec")
	}
	var missing []string
	every(g.Schema.root.member("spec"), "spec", func(path string) {
		if !seen[path] {
			missing = append(missing, path)
		}
	})
	if len(missing) > 0 {
		t.Errorf("in no object: %q", missing)
	}
}

func note(seen map[string]bool, n *node, v any, path string) {
	seen[path] = true
	if n == nil {
		return
	}
	if slices.ContainsFunc(n.enum, func(e any) bool { return tree.Equal(e, v) }) {
		seen[fmt.Sprint(path, "=", v)] = true
	}
	switch v := v.(type) {
	case object:
		for name, inner := range v {
			if n.sort == mapSort {
				note(seen, n.elem, inner, path+".*")
			} else {
				note(seen, n.member(name), inner, path+"."+name)
			}
		}
	case []any:
		for _, e := range v {
			note(seen, n.elem, e, path+".*")
		}
	}
}

func every(n *node, path string, f func(string)) {
	f(path)
	for _, v := range n.enum {
		f(fmt.Sprint(path, "=", v))
	}
	for _, m := range n.fields {
		every(m.node, path+"."+m.name, f)
	}
	if n.elem != nil {
		every(n.elem, path+".*", f)
	}
}

func TestKeysOfCustomResources(t *testing.T) {
	s := crdGenerator(t, "widgets").Schema
	spec := tree.Path{{Name: "spec"}}
	for name, want := range map[string]struct {
		c    Collection
		keys []string
	}{
		"ports": {Keyed, []string{"port", "protocol"}}, "zones": {Set, nil}, "steps": {Atomic, nil},
		"labels": {Map, nil}, "size": {Single, nil},
	} {
		if c, keys := s.Keys(spec.Member(name)); c != want.c || !slices.Equal(keys, want.keys) {
			t.Errorf("%s: %d %q", name, c, keys)
		}
	}
	if s.GVK.String() != "example.com/v1, Kind=Widget" || s.Cluster {
		t.Errorf("%s, cluster %v", s.GVK, s.Cluster)
	}
}

func TestForCRDErrors(t *testing.T) {
	crd := readCRD(t, "widgets")
	if _, err := ForCRD(crd, "v2"); err == nil {
		t.Error("a version that is not there")
	}
	props := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	props.Properties["spec"].Properties["name"] = apiextensionsv1.JSONSchemaProps{Type: "string", Pattern: "("}
	if _, err := ForCRD(crd, "v1"); err == nil {
		t.Error("a pattern that is none")
	}
	crd.Spec.Versions[0].Schema = nil
	if _, err := ForCRD(crd, "v1"); err == nil {
		t.Error("no schema")
	}
}

func BenchmarkCustomResource(b *testing.B) {
	g := crdGenerator(b, "widgets")
	r := source(1)
	b.ReportAllocs()
	for b.Loop() {
		g.Object(r, nil)
	}
}
