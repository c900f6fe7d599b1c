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

// The example generates a Pod from a sample and then adds a label, as another party would.
func Example() {
	g := &generate.Generator{Schema: generate.ForType(reflect.TypeFor[corev1.Pod]())}
	r := rand.New(rand.NewPCG(7, 0))
	pod, traits := g.Object(r, map[string]any{
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"inject": "yes"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
	})
	fmt.Println(len(traits) > 0)

	labels := tree.Path{{Name: "metadata"}, {Name: "labels"}}
	if label, ok := g.Addition(r, pod, labels); ok {
		pod, _ = label.Apply(pod)
	}
	found, _ := tree.Get(pod, labels)
	fmt.Println(len(found.(map[string]any)) > 1)
	fmt.Println(g.Schema.Keys(tree.Path{{Name: "spec"}, {Name: "volumes"}}))
	// Output:
	// true
	// true
	// 3 [name]
}
