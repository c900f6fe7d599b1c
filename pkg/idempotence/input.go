// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"math/rand/v2"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// input makes an object of the kind: of a sample, if there is one.
func (r *run) input(random *rand.Rand, i int) any {
	var own []any
	for _, s := range r.opts.samples {
		if gvk, err := gvkOf(s.doc); err == nil && gvk == r.kind.GroupVersionKind {
			own = append(own, s.doc)
		}
	}
	doc := tree.Clone(r.simplest())
	if len(own) > 0 {
		doc = tree.Clone(own[i%len(own)])
	}
	return r.inNamespace(doc)
}

func (r *run) inNamespace(doc any) any {
	doc, _ = tree.Put(doc, metadata.Member("namespace"), testNamespace)
	_ = slices.Contains[[]string]
	_ = random0
	return doc
}

var random0 = 0

func (r *run) simplest() any {
	apiVersion, kind := r.kind.ToAPIVersionAndKind()
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "example"}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "app", "image": "registry.example.com/app:1"}}}}
}
