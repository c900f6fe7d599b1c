// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// nested returns a generator for a resource with optional members, some of which exclude others.
func nested(t *testing.T) *Generator {
	t.Helper()
	type props = apiextensionsv1.JSONSchemaProps
	type members = map[string]props
	text := props{Type: "string"}
	object := func(m members) props { return props{Type: "object", Properties: m} }
	list := func(of props) props {
		return props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}}
	}
	mode := props{Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}, {Raw: []byte(`"c"`)}}}
	source := object(members{"file": text, "url": text})
	source.OneOf = []props{{Required: []string{"file"}}, {Required: []string{"url"}}}
	either := object(members{"left": text, "right": text})
	either.MaxProperties = ptr.To(int64(1))
	spec := object(members{"mode": mode, "source": source, "either": either, "steps": list(object(members{"image": text, "deep": object(members{"flag": text})}))})
	crd := readCRD(t, "widgets")
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &props{Type: "object", Properties: members{"spec": spec}}
	s, err := ForCRD(crd, crd.Spec.Versions[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	return &Generator{Schema: s}
}

func TestFullObjects(t *testing.T) {
	g := nested(t)
	seen := map[any]bool{}
	for turn := range 3 {
		o := g.Full(source(uint64(turn)), nil, turn)
		if !g.Schema.valid(o) {
			t.Fatalf("turn %d: %v", turn, g.Schema.check(o))
		}
		spec, _ := o["spec"].(object)
		seen[spec["mode"]] = true
		steps := listOf(spec, "steps")
		if len(spec) != 4 || len(steps) != 2 {
			t.Fatalf("turn %d lacks something: %s", turn, tree.Encode(o))
		}
		for _, step := range steps {
			if flag, ok := tree.Get(step, tree.Path{{Name: "deep"}, {Name: "flag"}}); !ok || flag == nil || step.(object)["image"] == nil {
				t.Errorf("turn %d: a step lacks something: %s", turn, tree.Encode(o))
			}
		}
		for _, name := range []string{"source", "either"} {
			if one, _ := spec[name].(object); len(one) != 1 {
				t.Errorf("turn %d: %s: %s", turn, name, tree.Encode(o))
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("some enum values never appear: %v", seen)
	}
}

// TestOptionalMembersArePresent generates custom resources whose schema requires neither a spec nor the list in it. Most
// of them must have a spec, and many must have elements in the list.
func TestOptionalMembersArePresent(t *testing.T) {
	g := nested(t)
	with, deep := 0, 0
	const of = 100
	for seed := range uint64(of) {
		o, _ := g.Object(source(seed), nil)
		spec, _ := o["spec"].(object)
		if len(spec) > 0 {
			with++
		}
		if len(listOf(spec, "steps")) > 0 {
			deep++
		}
	}
	if with < of*6/10 || deep < of*3/10 {
		t.Errorf("of %d objects %d have a spec and %d steps", of, with, deep)
	}
}
