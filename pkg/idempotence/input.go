// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"math/rand/v2"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/generate"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// inputs makes the objects of one kind.
type inputs struct {
	samples []map[string]any
	made    generate.Generator
}

func newInputs(k *kind, samples []sample) *inputs {
	in := &inputs{made: generate.Generator{Namespace: testNamespace}}
	for _, s := range samples {
		if gvk, err := gvkOf(s.doc); err == nil && gvk == k.GroupVersionKind {
			in.samples = append(in.samples, s.doc.(map[string]any))
		}
	}
	if k.goType != nil {
		in.made.Schema = generate.ForType(k.goType)
	}
	return in
}

// object makes the i-th object: of the samples in turns, if there are any, and first the samples
// as they are.
func (in *inputs) object(random *rand.Rand, i int) any {
	var sample map[string]any
	if n := len(in.samples); n > 0 {
		if sample = in.samples[i%n]; i < n || in.made.Schema == nil {
			return inNamespace(tree.Clone(sample))
		}
	}
	object, _ := in.made.Object(random, sample)
	return inNamespace(object)
}

// given reports whether a value is one of a sample's, and so may be there to be changed.
func (in *inputs) given(p tree.Path) bool {
	for _, s := range in.samples {
		if tree.Has(s, p) {
			return true
		}
	}
	return false
}

// inNamespace is what the API server does before it calls a webhook.
func inNamespace(doc any) any {
	doc, _ = tree.Put(doc, metadata.Member("namespace"), testNamespace)
	return doc
}
