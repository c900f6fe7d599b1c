// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

// TestWidgetsMatchTheirDefinition checks that the sample, before and after a call of each correct
// webhook, is valid and has no field that the API server prunes.
func TestWidgetsMatchTheirDefinition(t *testing.T) {
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		WidgetCRD().Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	if errs := schema.ValidateStructural(nil, structural); len(errs) > 0 {
		t.Fatal(errs)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range customResourceLookalikes() {
		after, err := created(c.New(), clone(sampleWidget().Object))
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, doc := range []object{sampleWidget().Object, after} {
			if errs := validation.ValidateCustomResource(nil, doc, validator); len(errs) > 0 {
				t.Errorf("%s: %v: %s", c.Name, errs, text(doc))
			}
			pruned := clone(doc)
			pruning.Prune(pruned, structural, true)
			if gone := lost(clone(doc), pruned, ""); gone != "" {
				t.Errorf("%s: the API server would prune %s", c.Name, gone)
			}
		}
	}
}
