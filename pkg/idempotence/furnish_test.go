// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// The furnished object is of use only if the API server would take it.
func TestFurnishedObjectIsValid(t *testing.T) {
	for _, gvk := range usualKinds {
		k := objects.KindOf(gvk)
		in := newInputs(k, nil)
		doc := in.object(rand.New(rand.NewPCG(1, 0)), 1)
		o, err := k.Object(doc)
		if err != nil {
			t.Fatalf("%s: %v", gvk.Kind, err)
		}
		if problems := k.Problems(o); len(problems) > 0 {
			t.Errorf("%s: %s", gvk.Kind, strings.Join(problems, "; "))
		}
	}
}
