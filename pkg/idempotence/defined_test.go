// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"math/rand/v2"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// What a definition says is made use of: any field may be left out, and added to, where it is valid.
func TestDefinitionsAreUsed(t *testing.T) {
	o := newOptions(Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{zonesCRD("mode")}}, internals{})
	k := o.kindOf(Subject{}, o.defined.Kinds()[0])
	r := &run{kind: k, opts: o, inputs: newInputs(k, nil), operation: "CREATE"}
	zones := tree.Path{{Name: "spec"}, {Name: "zones"}}
	doc, _ := tree.Put(map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Fleet", "metadata": map[string]any{"name": "a"}},
		zones, []any{map[string]any{"zone": "a", "mode": "safe"}})
	if !slices.ContainsFunc(edits.Variations(doc, true), func(edits []Edit) bool { return edits[0].What == Remove && edits[0].Path.HasPrefix(zones) }) {
		t.Error("no variation leaves out what may be missing")
	}
	if !slices.ContainsFunc(r.additions(rand.New(rand.NewPCG(1, 1)), doc), func(e Edit) bool { return e.What == Insert && slices.Equal(e.Path, zones) }) {
		t.Error("nobody adds to a list of the definition")
	}
}
