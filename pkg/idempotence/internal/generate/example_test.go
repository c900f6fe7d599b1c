// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/generate"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A sample, a volume of another party, and fields that no type knows.
func Example() {
	g := &generate.Generator{Schema: generate.ForType(reflect.TypeFor[corev1.Pod]())}
	r := rand.New(rand.NewPCG(7, 0))
	pod, traits := g.Object(r, map[string]any{
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"inject": "yes"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
	})
	fmt.Println(len(traits) > 0)

	volumes := tree.Path{{Name: "spec"}, {Name: "volumes"}}
	if volume, ok := g.Addition(r, pod, volumes); ok {
		pod, _ = volume.Apply(pod)
	}
	fmt.Println(g.Schema.Keys(volumes))

	sown := g.Schema.Unknown(r, pod)
	fmt.Println(len(sown) >= 2, tree.Has(pod, sown[0].Path))
	// Output:
	// true
	// 3 [name]
	// true true
}
