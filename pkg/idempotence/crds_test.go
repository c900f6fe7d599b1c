// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/test/corpus"
)

// fleetCRD returns the CustomResourceDefinition of a cluster-scoped kind with an irregular plural.
func fleetCRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	mode := apiextensionsv1.JSONSchemaProps{Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"fast"`)}, {Raw: []byte(`"safe"`)}},
		Default: &apiextensionsv1.JSON{Raw: []byte(`"safe"`)}}
	ships := apiextensionsv1.JSONSchemaProps{
		Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"name"},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text, "flag": text},
		}},
	}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"mode": mode, "ships": ships, "port": text, "owner": text},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "!has(oldSelf.owner) || self.owner == oldSelf.owner", Message: "owner stays"}},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "fleeten.sea.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "sea.example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "fleeten", Singular: "fleet", Kind: "Fleet", ListKind: "FleetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Required: []string{"spec"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
				}},
			}},
		},
	}
}

// TestDefinedCustomResources gives the harness a CustomResourceDefinition and no sample. The harness must generate
// objects, and must find results that the schema forbids.
func TestDefinedCustomResources(t *testing.T) {
	withShip := func(flag any) change {
		return func(_ *admissionv1.AdmissionRequest, doc document) {
			spec := at(doc, "spec")
			ships, _ := spec["ships"].([]any)
			if !slices.ContainsFunc(ships, func(s any) bool { return s.(document)["name"] == "flagship" }) {
				spec["ships"] = append(ships, document{"name": "flagship", "flag": flag})
			}
		}
	}
	set := func(name string, value any) change {
		return func(_ *admissionv1.AdmissionRequest, doc document) { at(doc, "spec")[name] = value }
	}
	for _, tt := range []struct {
		name   string
		edit   change
		broken Law
	}{
		{"an element that is ensured", withShip("red"), ""},
		{"an element twice", appendedTo("ships", document{"name": "flagship"}, "spec"), L1},
		{"an element of the wrong type", withShip(7), L1},
		{"a value that is not allowed", set("mode", "slow"), L1},
		{"a value that is allowed", set("mode", "fast"), ""},
		{"a field that the CEL rules protect", set("owner", "agent"), L6},
		{"the same, on CREATE only", on(admissionv1.Create, func(_ *admissionv1.AdmissionRequest, doc document) {
			if spec := at(doc, "spec"); spec["owner"] == nil {
				spec["owner"] = "agent"
			}
		}), L6},
		{"relies on the default", func(r *admissionv1.AdmissionRequest, doc document) {
			if _, ok := doc["spec"].(document)["mode"].(string); !ok {
				panic("no mode")
			}
			marked(r, doc)
		}, ""},
		{"does not look whether there is a list", func(r *admissionv1.AdmissionRequest, doc document) {
			_ = doc["spec"].(document)["ships"].([]any)
			marked(r, doc)
		}, L2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			namespaced := ""
			edit := func(r *admissionv1.AdmissionRequest, doc document) {
				if r.Namespace != "" {
					namespaced = r.Namespace
				}
				tt.edit(r, doc)
			}
			report, err := Run(t.Context(), editing("sea.example.com", "v1", "fleeten", onBoth, edit), Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{fleetCRD()}, Objects: 10})
			if err != nil {
				t.Fatal(err)
			}
			if wants(t, report, tt.broken); report.Changed == 0 || tt.broken == "" && len(report.Incomplete) > 0 || namespaced != "" {
				t.Errorf("in %q:\n%s", namespaced, text(report))
			}
		})
	}
}

// TestDefinedWidgets runs the harness on the webhooks of package corpus for Widgets, with the CustomResourceDefinition
// of Widget. With and without samples, broken webhooks must fail a law and correct ones must pass.
func TestDefinedWidgets(t *testing.T) {
	widgets := func(c corpus.Case) bool { return slices.Contains(c.Webhook.Rules[0].Resources, "widgets") }
	var cases []corpus.Case
	for _, c := range slices.Concat(corpus.Patterns(), corpus.Lookalikes()) {
		if widgets(c) {
			cases = append(cases, c)
		}
	}
	for _, c := range shareOf(cases, shareOfHeldOut) {
		for _, samples := range [][]runtime.Object{nil, c.Samples} {
			c.Samples = samples
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				report := runCase(t, c, Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{corpus.WidgetCRD()}, Objects: objectsOfCase})
				if len(c.Laws) == 0 && !report.OK() || len(c.Laws) > 0 && report.OK() {
					t.Errorf("%d samples, breaks %q:\n%s", len(c.Samples), c.Laws, text(report))
				}
			})
		}
	}
}

func TestInvalidDefinitionsAreErrors(t *testing.T) {
	subject := editing("sea.example.com", "v1", "fleeten", []admissionregistrationv1.OperationType{everything}, marked)
	bad := fleetCRD()
	bad.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "thing"}
	if _, err := Run(t.Context(), subject, Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{bad}}); err == nil || !strings.Contains(err.Error(), bad.Name) {
		t.Errorf("an invalid definition: error %v", err)
	}
	unserved := fleetCRD()
	unserved.Spec.Versions[0].Served = false
	if _, err := Run(t.Context(), subject, Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{unserved}}); err == nil {
		t.Error("a version that is not served is tested")
	}
}
