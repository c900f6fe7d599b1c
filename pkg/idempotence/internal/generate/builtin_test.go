// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// TestBuiltinValidatesObjects validates generated objects, additions and samples with internal/k8svalidation. It must
// accept all of them, because the harness must not call an object invalid that the API server accepts.
func TestBuiltinValidatesObjects(t *testing.T) {
	for _, typ := range builtIn {
		g := generator(typ)
		for seed := range uint64(200) {
			r := source(seed)
			o, traits := g.Object(r, nil)
			refuse := func(o object, what string) {
				v := decodeStrictly(t, typ, o).(runtime.Object)
				k8svalidation.Default(v)
				if errs := k8svalidation.Validate(v); len(errs) > 0 {
					t.Errorf("%s, seed %d, traits %v, %s: %v\n%s", typ, seed, traits, what, errs, tree.Encode(o))
				}
			}
			refuse(o, "made")
			places := g.Places(o)
			for range 5 {
				if a, ok := g.Addition(r, o, pick(&build{r: r}, places...)); ok {
					o, _ = a.Apply(o)
				}
			}
			refuse(o, "with additions")
			o, traits = g.Object(r, o)
			refuse(o, "as a sample")
		}
	}
}
