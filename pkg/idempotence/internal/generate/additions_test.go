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

func TestPlacesOfAPod(t *testing.T) {
	g := generator(reflect.TypeFor[corev1.Pod]())
	pod := object{
		"metadata": object{"name": "x"},
		"spec": object{
			"containers":          []any{object{"name": "app", "resources": object{}, "ports": nil}},
			"ephemeralContainers": []any{object{"name": "debugger"}},
			"affinity":            object{"podAffinity": object{}},
		},
		"status": object{"conditions": []any{}},
	}
	var got []string
	for _, p := range g.Places(pod) {
		got = append(got, p.String())
	}
	want := strings.Fields(`metadata.annotations metadata.finalizers metadata.labels metadata.ownerReferences
		spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution
		spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
		spec.containers spec.containers[name=app].args spec.containers[name=app].command
		spec.containers[name=app].env spec.containers[name=app].envFrom spec.containers[name=app].ports
		spec.containers[name=app].resources.limits spec.containers[name=app].resources.requests spec.containers[name=app].volumeMounts
		spec.hostAliases spec.imagePullSecrets spec.initContainers spec.nodeSelector spec.readinessGates spec.tolerations
		spec.topologySpreadConstraints spec.volumes`)
	if !slices.Equal(got, want) {
		t.Errorf("places:\n%q\nwant\n%q", got, want)
	}
	if _, ok := g.Addition(source(1), pod, g.Places(pod)[14]); ok {
		t.Error("a mount, although the pod has no volume")
	}
	if _, ok := g.Addition(source(1), pod, tree.Path{{Name: "status"}}); ok {
		t.Error("an addition to no place")
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

func TestUnknownFieldsAreFoundAgain(t *testing.T) {
	for _, typ := range builtIn {
		g := generator(typ)
		inLists := 0
		for seed := range uint64(300) {
			r := source(seed)
			o, _ := g.Object(r, nil)
			before := clone(o)
			sown := g.Schema.Unknown(r, o)
			if typ == builtIn[0] && topOf(o) == "" {
				t.Fatalf("seed %d: none at the top: %v", seed, sown)
			}
			seen, values := map[string]bool{}, map[any]bool{}
			for _, s := range sown {
				if v, ok := tree.Get(o, s.Path); !ok || v != s.Value || seen[s.Name()] || values[v] {
					t.Fatalf("%s, seed %d: %s is %v, not %v", typ, seed, s.Path, v, s.Value)
				}
				seen[s.Name()], values[s.Value] = true, true
				if slices.ContainsFunc(s.Path, func(step tree.Step) bool { return step.Element }) {
					inLists++
				}
			}
			if n := strip(o); n != len(sown) || n == 0 || !tree.Equal(before, o) {
				t.Fatalf("%s, seed %d: %d fields sown, %d told\n%s", typ, seed, n, len(sown), tree.Encode(before))
			}
		}
		if inLists == 0 && (typ.Name() == "Pod" || typ.Name() == "Deployment" || typ.Name() == "Service") {
			t.Errorf("%s: no field in an element of a list", typ)
		}
	}
}

func topOf(o object) string {
	for name := range o {
		if strings.HasPrefix(name, unknownPrefix) {
			return name
		}
	}
	return ""
}

// strip removes the fields that Unknown added, and counts them.
func strip(v any) (n int) {
	switch v := v.(type) {
	case object:
		for name, inner := range v {
			if strings.HasPrefix(name, unknownPrefix) {
				delete(v, name)
				n++
			} else {
				n += strip(inner)
			}
		}
	case []any:
		for _, e := range v {
			n += strip(e)
		}
	}
	return n
}
