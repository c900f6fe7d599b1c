// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// zonesCRD returns a CustomResourceDefinition with a list whose elements have the key zone. members are the names of
// their other fields.
func zonesCRD(members ...string) *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	element := map[string]apiextensionsv1.JSONSchemaProps{"zone": text}
	for _, name := range members {
		element[name] = text
	}
	crd := fleetCRD()
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"zones": {
			Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"zone"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Required: []string{"zone"}, Properties: element,
			}},
		}},
	}
	return crd
}

// TestLossesBySchemaKeys tests webhooks that change the elements of a list with schema keys. A changed element is no
// loss, but a removed member of an element must fail L10.
func TestLossesBySchemaKeys(t *testing.T) {
	everyZone := func(edit func(document)) change {
		return func(_ *admissionv1.AdmissionRequest, doc document) {
			zones, _ := at(doc, "spec")["zones"].([]any)
			for _, zone := range zones {
				edit(zone.(document))
			}
		}
	}
	for _, tt := range []struct {
		name    string
		members []string
		edit    func(document)
		broken  Law
	}{
		{"enforces a member", []string{"mode"}, func(zone document) { zone["mode"] = "safe" }, ""},
		{"drops another as well", []string{"mode", "note"}, func(zone document) { zone["mode"] = "safe"; delete(zone, "note") }, L10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing("sea.example.com", "v1", "fleeten", onBoth, everyZone(tt.edit)), Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{zonesCRD(tt.members...)}, Objects: 15})
			if err != nil {
				t.Fatal(err)
			}
			if wants(t, report, tt.broken); report.Changed == 0 {
				t.Errorf("nothing was changed:\n%s", text(report))
			}
		})
	}
}
