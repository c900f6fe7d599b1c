// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/generate"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// kinds are built-in kinds of several groups.
var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
}

// newRun returns a run without webhooks, to generate objects of a kind.
func newRun(t *testing.T, k *objects.Kind) *Run {
	t.Helper()
	namespaces, err := session.NewNamespaces(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := New(session.New(t.Context(), k, nil, namespaces, &session.Connection{}), laws.Options{}, NewInputs(k, nil), Settings{})
	r.Operation = admissionv1.Create
	return r
}

func TestFurnishedObjectIsValid(t *testing.T) {
	for _, gvk := range kinds {
		k := objects.KindOf(gvk)
		doc := NewInputs(k, nil).object(rand.New(rand.NewPCG(1, 0)), 1)
		o, err := k.Object(doc)
		if err != nil {
			t.Fatalf("%s: %v", gvk.Kind, err)
		}
		if problems := k.Problems(o); len(problems) > 0 {
			t.Errorf("%s: %s", gvk.Kind, strings.Join(problems, "; "))
		}
	}
}

// TestIdentityAgreesWithTheTypes checks how package tree identifies list elements. The package uses only the name of
// the list, and must agree with the keys that the Go types declare.
func TestIdentityAgreesWithTheTypes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	seen := map[string]bool{}
	for _, gvk := range kinds {
		k := objects.KindOf(gvk)
		in := NewInputs(k, nil)
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
					case p.Last() == "readinessGates" || p.Last() == "volumeClaimTemplates": // no two elements of these lists are similar
					default:
						seen[p.Last()] = true
						t.Errorf("%s %s: known by %s, declared %d %v", gvk.Kind, p, identity, collection, keys)
					}
				}
			})
		}
	}
}

// TestAdditionsAreLegalTogether adds all generated additions to an object. The API server must accept nearly all of
// them together.
func TestAdditionsAreLegalTogether(t *testing.T) {
	for _, gvk := range kinds {
		k := objects.KindOf(gvk)
		r := newRun(t, k)
		random := rand.New(rand.NewPCG(1, 0))
		x, ok := r.Valid(r.inputs.object(random, 1))
		if !ok {
			t.Fatalf("%s: the object is not valid", gvk.Kind)
		}
		additions := r.additions(random, x.Doc)
		legal := r.legal(x, additions)
		if _, ok := r.Edited(x, legal); !ok || len(legal) < len(additions)-len(edits.ContainerLists(x.Doc)) {
			t.Errorf("%s: %d of %d additions are legal together", gvk.Kind, len(legal), len(additions))
		}
	}
}

// TestDefinitionDecidesTheEdits uses a CustomResourceDefinition. The edits must remove its optional fields and insert
// elements into its lists.
func TestDefinitionDecidesTheEdits(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "fleeten.sea.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "sea.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "fleeten", Kind: "Fleet"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"zones": {
							Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"zone"},
							Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
								Type: "object", Required: []string{"zone"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{"zone": text, "mode": text},
							}},
						}},
					}},
				}},
			}},
		},
	}
	defined := objects.Definitions{}
	if err := defined.Add(crd); err != nil {
		t.Fatal(err)
	}
	gvk := defined.Kinds()[0]
	k := objects.KindOf(gvk)
	k.Define(defined[gvk])
	r := newRun(t, k)
	zones := tree.Path{{Name: "spec"}, {Name: "zones"}}
	doc, _ := tree.Put(map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Fleet", "metadata": map[string]any{"name": "a"}},
		zones, []any{map[string]any{"zone": "a", "mode": "safe"}})
	if !slices.ContainsFunc(edits.Variations(doc, true), func(list []edits.Edit) bool { return list[0].What == edits.Remove && list[0].Path.HasPrefix(zones) }) {
		t.Error("no variation removes an optional field")
	}
	if !slices.ContainsFunc(r.additions(rand.New(rand.NewPCG(1, 1)), doc), func(e edits.Edit) bool { return e.What == edits.Insert && slices.Equal(e.Path, zones) }) {
		t.Error("no addition inserts into a list of the definition")
	}
}

// TestChoicesDecideTheObject generates objects from inputs of a fuzzer. Different inputs must generate different
// objects.
func TestChoicesDecideTheObject(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	in := NewInputs(objects.KindOf(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}), nil)
	docs := map[string]bool{}
	for range 30 {
		input := make([]byte, 4+random.IntN(60))
		for i := range input {
			input[i] = byte(random.Uint64())
		}
		docs[string(tree.Encode(in.object(rand.New(NewChoices(input, 0)), 5)))] = true
	}
	s := NewChoices([]byte{200, 0, 7, 255}, 0)
	r := rand.New(s)
	if n, f := r.IntN(256), r.Float64(); n != 200 || f < 0.99 {
		t.Errorf("bytes 200 and 255 give %d and %f", n, f)
	}
	if len(s.input) != 0 || len(docs) < 20 {
		t.Errorf("%d bytes are left, %d objects of 30 inputs", len(s.input), len(docs))
	}
}
