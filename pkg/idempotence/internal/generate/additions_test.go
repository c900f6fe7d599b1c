// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

func TestAdditionsAreNewAndDecode(t *testing.T) {
	for _, typ := range builtIn {
		t.Run(typ.Name(), func(t *testing.T) {
			g := generator(typ)
			for seed := range uint64(80) {
				r := source(seed)
				o, _ := g.Object(r, nil)
				before := tree.Clone(o)
				places := g.Places(o)
				r.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
				for _, at := range places[:min(len(places), 12)] {
					a, ok := g.Addition(r, o, at)
					if !ok {
						continue
					}
					with, ok := a.Apply(o)
					if !ok {
						t.Fatalf("seed %d: no way to %s in %s", seed, at, tree.Encode(o))
					}
					if !tree.Equal(before, o) {
						t.Fatalf("seed %d: adding to %s changed the object", seed, at)
					}
					if changes := tree.Changes(o, with); len(changes) != 1 || changes[0].Kind != tree.Added && changes[0].Old != nil {
						t.Fatalf("seed %d: adding to %s: %+v", seed, at, changes)
					}
					decodeStrictly(t, typ, with)
					if d := twice(g.Schema, with); d != "" {
						t.Fatalf("seed %d: adding to %s: stands twice: %s", seed, at, d)
					}
				}
			}
		})
	}
}

func TestPlacesOfAService(t *testing.T) {
	g := generator(reflect.TypeFor[corev1.Service]())
	service := object{
		"metadata": object{"name": "x"},
		"spec":     object{"ports": []any{object{"port": int64(80)}}},
		"status":   object{"conditions": []any{}},
	}
	var got []string
	for _, p := range g.Places(service) {
		got = append(got, p.String())
	}
	want := strings.Fields("metadata.annotations metadata.finalizers metadata.labels metadata.ownerReferences spec.ports spec.selector")
	if !slices.Equal(got, want) {
		t.Errorf("places:\n%q\nwant\n%q", got, want)
	}
	if _, ok := g.Addition(source(1), service, g.Places(service)[4]); ok {
		t.Error("a second port is added beside a port without a name")
	}
	if _, ok := g.Addition(source(1), service, tree.Path{{Name: "status"}}); ok {
		t.Error("status is not a place for an addition, but got one")
	}
}

func TestKeys(t *testing.T) {
	s := ForType(reflect.TypeFor[*corev1.Pod]())
	spec := tree.Path{{Name: "spec"}}
	container := spec.Member("containers").Element("name=a", 0)
	for _, tc := range []struct {
		at   tree.Path
		want Collection
		keys []string
	}{
		{spec.Member("containers"), Keyed, []string{"name"}},
		{container.Member("ports"), Keyed, []string{"containerPort", "protocol"}},
		{container.Member("env"), Keyed, []string{"name"}},
		{container.Member("volumeMounts"), Keyed, []string{"mountPath"}},
		{container.Member("args"), Atomic, nil},
		{container.Member("resources").Member("limits"), Map, nil},
		{spec.Member("topologySpreadConstraints"), Keyed, []string{"topologyKey", "whenUnsatisfiable"}},
		{spec.Member("tolerations"), Atomic, nil},
		{tree.Path{{Name: "metadata"}}.Member("finalizers"), Set, nil},
		{tree.Path{{Name: "metadata"}}.Member("ownerReferences"), Keyed, []string{"uid"}},
		{tree.Path{{Name: "metadata"}}.Member("labels"), Map, nil},
		{spec, Single, nil},
		{spec.Member("noSuchField").Member("x"), Single, nil},
	} {
		if got, keys := s.Keys(tc.at); got != tc.want || !slices.Equal(keys, tc.keys) {
			t.Errorf("%s: %d %q, want %d %q", tc.at, got, keys, tc.want, tc.keys)
		}
	}
}
