// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

func TestRepairRemovesOptionalParts(t *testing.T) {
	g := crdGenerator(t, "widgets")
	b := &build{Generator: g, r: source(1)}
	widget := func(spec object) object {
		for name, v := range (object{"name": "a", "size": int64(1), "mode": "Fast", "inline": "abc"}) {
			put(spec, name, v)
		}
		return object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": object{"name": "x"}, "spec": spec}
	}
	for name, spec := range map[string]object{
		"a number that is too large": {"ratio": int64(7)},
		"a text that is too long":    {"labels": object{"a": "01234567890123456789"}},
		"keys that stand twice":      {"ports": []any{object{"port": int64(1)}, object{"port": int64(1), "protocol": "TCP"}}},
		"a rule":                     {"least": int64(3), "most": int64(2)},
		"inside an element":          {"steps": []any{object{"run": ""}}},
		"another type":               {"even": "text"},
	} {
		o := widget(spec)
		if g.Schema.valid(o) {
			t.Errorf("%s is valid", name)
		}
		// The error of a CEL rule for the whole spec does not name a member to remove.
		if ok := b.repair(o); ok != (name != "a rule") || ok && !g.Schema.valid(o) {
			t.Errorf("%s: repaired: %v\n%s", name, ok, tree.Encode(o))
		}
	}
	if b.repair(widget(object{"mode": "Odd"})) {
		t.Error("without what is required it is valid")
	}
}

func TestCustomResourcesWithoutATrait(t *testing.T) {
	g := crdGenerator(t, "widgets")
	for _, without := range fillTraits {
		g.Without = map[string]bool{without: true}
		for seed := range uint64(100) {
			if _, traits := g.Object(source(seed), nil); slices.Contains(traits, without) {
				t.Errorf("seed %d: %v", seed, traits)
			}
		}
	}
}

// TestTraitsFitTheSample generates objects from samples that forbid certain traits. An object must not have these
// traits.
func TestTraitsFitTheSample(t *testing.T) {
	port := object{"containerPort": int64(80)}
	container := func(name string, more object) object {
		more["name"], more["image"] = name, "x"
		return more
	}
	for _, tc := range []struct {
		spec  object
		never []string
	}{
		{object{"containers": []any{container("a", object{"ports": []any{port}}), container("b", object{"ports": []any{port}})}}, []string{"host network"}},
		{object{"os": object{"name": "windows"}}, []string{"pod security context", "container security context", "host IPC", "host network", "shared processes"}},
		{object{"securityContext": object{"sysctls": []any{}}}, []string{"host IPC", "host network"}},
		{object{"nodeName": "n"}, []string{"scheduling gates", "node name"}},
		{object{"schedulingGates": []any{}}, []string{"node name"}},
		{object{"priority": int64(3)}, []string{"priority class"}},
		{object{"resources": object{}}, []string{"odd quantities", "limits only"}},
		{object{"restartPolicy": "Never"}, []string{"restartPolicy Always"}},
	} {
		put(tc.spec, "containers", []any{container("a", object{})})
		g := generator(reflect.TypeFor[corev1.Pod]())
		for seed := range uint64(500) {
			_, traits := g.Object(source(seed), object{"metadata": object{"name": "x"}, "spec": tc.spec})
			for _, name := range tc.never {
				if slices.Contains(traits, name) {
					t.Fatalf("seed %d: %q for %s", seed, name, tree.Encode(tc.spec))
				}
			}
		}
	}
}

// TestClaimTemplatesAreMounted requires that some generated StatefulSet mounts a volume of its volumeClaimTemplates.
// The Pod template does not list such a volume.
func TestClaimTemplatesAreMounted(t *testing.T) {
	g := generator(reflect.TypeFor[appsv1.StatefulSet]())
	for seed := range uint64(seeds) {
		o, _ := g.Object(source(seed), nil)
		if bytes.Contains(tree.Encode(o), []byte(`"mountPath":"/data","name":"claim"`)) {
			return
		}
	}
	t.Error("no claim is mounted")
}
