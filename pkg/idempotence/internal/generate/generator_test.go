// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

const seeds = 1000

func TestObjectsDecodeStrictly(t *testing.T) {
	for _, typ := range builtIn {
		t.Run(typ.Name(), func(t *testing.T) {
			g := generator(typ)
			for seed := range uint64(seeds) {
				g.Update = seed%4 == 0
				o, traits := g.Object(source(seed), nil)
				decodeStrictly(t, typ, o)
				if d := twice(g.Schema, o); d != "" {
					t.Fatalf("seed %d, traits %v: stands twice: %s\n%s", seed, traits, d, tree.Encode(o))
				}
				if slices.Contains(traits, "many env") && len(tree.Encode(o)) < 1000 {
					t.Fatalf("seed %d: 100 env in %s", seed, tree.Encode(o))
				}
			}
		})
	}
}

func TestEveryTraitAppears(t *testing.T) {
	for _, typ := range builtIn {
		t.Run(typ.Name(), func(t *testing.T) {
			g := generator(typ)
			count := map[string]int{}
			for seed := range uint64(3 * seeds) {
				g.Update = seed%2 == 0
				_, traits := g.Object(source(seed), nil)
				for _, name := range traits {
					count[name]++
				}
			}
			for _, name := range g.Traits() {
				// No object has a field that is illegal in its kind.
				illegal := typ != reflect.TypeFor[corev1.Pod]() && name == "ephemeral containers" ||
					name == "deadline" && g.Schema.kind.podRules.noDeadline ||
					strings.HasPrefix(name, "restartPolicy ") && !slices.Contains(g.Schema.kind.podRules.restart, strings.TrimPrefix(name, "restartPolicy ")) ||
					strings.HasPrefix(name, "restartPolicy ") && g.Schema.kind.podRules.restart[0] == "Never" ||
					name == "template without labels" && count["template labels"] > 0 && g.Schema.kind.podRules.noDeadline ||
					name == "namespace" && g.Schema.Cluster
				if (count[name] == 0) != illegal {
					t.Errorf("trait %q appeared %d times", name, count[name])
				}
			}
			for name := range count {
				if !slices.Contains(g.Traits(), name) {
					t.Errorf("trait %q is not among Traits", name)
				}
			}
		})
	}
}

// TestEveryEnumValueAppears checks that each value of the enums of a Pod appears in a generated Pod.
func TestEveryEnumValueAppears(t *testing.T) {
	want := map[string][]string{
		"restartPolicy": {"Always", "OnFailure", "Never"}, "dnsPolicy": {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"},
		"imagePullPolicy": {"Always", "Never", "IfNotPresent"}, "protocol": {"TCP", "UDP", "SCTP"}, "scheme": {"HTTP", "HTTPS"},
		"operator": {"Exists", "Equal", "In", "NotIn", "DoesNotExist", "Gt", "Lt"}, "effect": {"NoSchedule", "PreferNoSchedule", "NoExecute"},
		"whenUnsatisfiable": {"DoNotSchedule", "ScheduleAnyway"}, "fsGroupChangePolicy": {"OnRootMismatch", "Always"},
		"type": {"RuntimeDefault", "Unconfined", "Localhost", "Socket", "", "DirectoryOrCreate"}, "medium": {"Memory", ""},
	}
	seen := map[string]bool{}
	g := generator(reflect.TypeFor[corev1.Pod]())
	for seed := range uint64(3 * seeds) {
		o, _ := g.Object(source(seed), nil)
		tree.Leaves(o, func(p tree.Path, v any) { seen[fmt.Sprint(p.Last(), "=", v)] = true })
	}
	for name, values := range want {
		for _, v := range values {
			if !seen[name+"="+v] {
				t.Errorf("no %s is %q", name, v)
			}
		}
	}
}

func TestWithoutATrait(t *testing.T) {
	g := generator(reflect.TypeFor[corev1.Pod]())
	for _, without := range []string{"no labels", "generateName only", "env", "mounts"} {
		g.Without = map[string]bool{without: true}
		for seed := range uint64(200) {
			o, traits := g.Object(source(seed), nil)
			if slices.Contains(traits, without) {
				t.Fatalf("seed %d: %q in %v", seed, without, traits)
			}
			if meta := o["metadata"].(object); without == "generateName only" && meta["name"] == nil {
				t.Fatalf("seed %d: %s", seed, tree.Encode(meta))
			}
		}
	}
}

func TestObjectIsAFunctionOfTheSeed(t *testing.T) {
	for _, typ := range builtIn {
		g := generator(typ)
		for seed := range uint64(100) {
			r := source(seed)
			o, traits := g.Object(r, nil)
			r = source(seed)
			o2, traits2 := g.Object(r, nil)
			if !tree.Equal(o, o2) || !slices.Equal(traits, traits2) {
				t.Fatalf("%s, seed %d: two objects of one seed differ:\n%s\n%s", typ, seed, tree.Encode(o), tree.Encode(o2))
			}
		}
	}
}

func TestSamplesKeepWhatTheyHave(t *testing.T) {
	for _, typ := range builtIn {
		g := generator(typ)
		for seed := range uint64(300) {
			r := source(seed)
			sample, _ := g.Object(r, nil)
			before := tree.Clone(sample)
			o, _ := g.Object(r, sample)
			if !tree.Equal(before, sample) {
				t.Fatalf("%s, seed %d: the sample changed", typ, seed)
			}
			for _, c := range tree.Changes(sample, o) {
				// A null value may be replaced. If an element without keys gets more members, it counts as another
				// element.
				if c.Kind != tree.Added && c.Old != nil {
					t.Fatalf("%s, seed %d: %s %s: %s → %s", typ, seed, c.Kind, c.Path, tree.Encode(c.Old), tree.Encode(c.New))
				}
			}
			decodeStrictly(t, typ, o)
			if d := twice(g.Schema, o); d != "" {
				t.Fatalf("%s, seed %d: stands twice: %s\n%s", typ, seed, d, tree.Encode(o))
			}
		}
	}
}

func BenchmarkObject(b *testing.B) {
	g := generator(reflect.TypeFor[corev1.Pod]())
	r := source(1)
	b.ReportAllocs()
	for b.Loop() {
		g.Object(r, nil)
	}
}
