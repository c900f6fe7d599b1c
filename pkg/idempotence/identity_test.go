// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/generate"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// What tells the elements of lists apart goes by the names of the lists. It must agree with the keys
// that the types declare.
func TestIdentityAgreesWithTheTypes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	seen := map[string]bool{}
	for _, gvk := range usualKinds {
		k := objects.KindOf(gvk)
		in := newInputs(k, nil)
		for i := range 30 {
			tree.Lists(in.object(random, i), func(p tree.Path, list []any) {
				collection, keys := in.made.Schema.Keys(p)
				for _, element := range list {
					fields, ok := element.(map[string]any)
					if !ok || seen[p.Last()] {
						continue
					}
					identity := tree.Identity(p, element)
					switch {
					case collection == generate.Keyed && !slices.ContainsFunc(keys, func(key string) bool {
						return fields[key] != nil && !strings.Contains(identity, key+"=")
					}):
					case collection != generate.Keyed && (strings.HasPrefix(identity, "{") || strings.HasPrefix(identity, "name=")):
					case p.Last() == "readinessGates" || p.Last() == "volumeClaimTemplates": // of which no two are alike
					default:
						seen[p.Last()] = true
						t.Errorf("%s %s: known by %s, declared %d %v", gvk.Kind, p, identity, collection, keys)
					}
				}
			})
		}
	}
}
