// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// newCheck returns a function that validates a new custom resource, except for its metadata.
func newCheck(v *apiextensionsv1.CustomResourceValidation) (func(object) field.ErrorList, error) {
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	if errs := schema.ValidateStructural(nil, structural); len(errs) > 0 {
		return nil, fmt.Errorf("not structural: %w", errs.ToAggregate())
	}
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return func(o object) field.ErrorList {
		o = clone(o)
		defaulting.PruneNonNullableNullsWithoutDefaults(o, structural)
		defaulting.Default(o, structural)
		errs := validation.ValidateCustomResource(nil, o, validator)
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, o)...)
		if rules != nil && len(errs) == 0 { // CEL rules rely on correct types
			more, _ := rules.Validate(context.Background(), nil, structural, o, nil, celconfig.RuntimeCELCostBudget)
			errs = append(errs, more...)
		}
		return errs
	}, nil
}

const repairs = 20

// repair removes the values that fail validation. It returns false if the object is still invalid, for example because
// a value is required.
func (g *Generator) repair(o object) bool {
	for range repairs {
		errs := g.Schema.check(o)
		if len(errs) == 0 {
			return true
		}
		if !g.Schema.remove(o, errs[0].Field) {
			return false
		}
	}
	return false
}

// remove deletes the innermost optional value on the path, which comes from an error message. If a name on the path
// contains dots, remove cannot find that member. Then it deletes the value that contains the member.
func (s *Schema) remove(o object, path string) bool {
	take := func() {}
	found := false
	n, value := s.root, any(o)
	for i, name := range fieldNames(path) {
		switch v := value.(type) {
		case object:
			inner, there := v[name]
			if !there {
				value = nil
				break
			}
			if optional(n, v, name) && (i > 0 || name != "metadata" && name != "apiVersion" && name != "kind") {
				take, found = func() { delete(v, name) }, true
			}
			n, value = n.member(name), inner
		default:
			// Remove the whole list, not a single element.
			list, _ := v.([]any)
			at, err := strconv.Atoi(name)
			if err != nil || at < 0 || at >= len(list) {
				value = nil
				break
			}
			if n != nil {
				n = n.elem
			}
			value = list[at]
		}
	}
	take()
	return found
}

// optional reports whether an object can omit a member.
func optional(n *node, o object, name string) bool {
	if n == nil {
		return true
	}
	if int64(len(o)) <= n.limits.minProperties() {
		return false
	}
	for _, m := range n.fields {
		if m.name == name {
			return !m.required
		}
	}
	return true
}

func fieldNames(path string) []string {
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}
