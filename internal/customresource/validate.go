// SPDX-License-Identifier: Apache-2.0

package customresource

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Validate returns the errors for which the API server rejects the creation of the object.
func (v *Version) Validate(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	errs := ValidateType(u, v.Kind)
	if len(errs) == 0 {
		errs = apivalidation.ValidateObjectMetaAccessor(u, v.Namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
		errs = append(errs, apiservervalidation.ValidateCustomResource(nil, u.Object, v.all)...)
		errs = append(errs, v.validateScale(u, true)...)
	}
	errs = append(errs, v.validateEmbedded(ctx, u)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.schema, u.Object)...)
	return append(errs, v.validateRules(ctx, errs, u, nil)...)
}

// ValidateUpdate returns the errors for which the API server rejects an update of old to u.
func (v *Version) ValidateUpdate(ctx context.Context, u, old *unstructured.Unstructured, subresource string) field.ErrorList {
	both := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: v.schema})
	errs := ValidateType(u, v.Kind)
	if len(errs) == 0 {
		errs = apivalidation.ValidateObjectMetaAccessorUpdate(u, old, field.NewPath("metadata"))
		errs = append(errs, v.validateFields(u, old, subresource, both)...)
	}
	if subresource != "status" {
		errs = append(errs, v.validateEmbedded(ctx, u)...)
	}
	// As in the API server, errors in lists count only if the old object had none.
	if len(listtype.ValidateListSetsAndMaps(nil, v.schema, old.Object)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.schema, u.Object)...)
	}
	return append(errs, v.validateRules(ctx, errs, u, old, cel.WithRatcheting(both))...)
}

func (v *Version) validateFields(u, old *unstructured.Unstructured, subresource string, both *common.CorrelatedObject) field.ErrorList {
	if subresource != "status" {
		errs := apiservervalidation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, v.all, apiservervalidation.WithRatcheting(both))
		return append(errs, v.validateScale(u, true)...)
	}
	errs := v.validateScale(u, false)
	if status, ok := u.Object["status"]; ok && v.status != nil {
		errs = append(apiservervalidation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"], v.status,
			apiservervalidation.WithRatcheting(both.Key("status"))), errs...)
	}
	return errs
}

// ValidateType returns an error if the kind or the version of the object differs from the expected one.
func ValidateType(u *unstructured.Unstructured, want schema.GroupVersionKind) field.ErrorList {
	var errs field.ErrorList
	if kind := u.GetKind(); kind != want.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, fmt.Sprintf("must be %v", want.Kind)))
	}
	if want := want.GroupVersion().String(); u.GetAPIVersion() != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), u.GetAPIVersion(), fmt.Sprintf("must be %v", want)))
	}
	return errs
}

// validateEmbedded checks the metadata of embedded objects. It accepts both signatures of objectmeta.Validate, which
// takes a context only in newer versions of its module.
func (v *Version) validateEmbedded(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	switch validate := any(objectmeta.Validate).(type) {
	case func(*field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(nil, u.Object, v.schema, false)
	case func(context.Context, *field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(ctx, nil, u.Object, v.schema, false)
	}
	return field.ErrorList{field.InternalError(nil, errors.New("the library's validation of embedded metadata is unknown"))}
}

// validateRules evaluates the CEL rules. It skips them if an earlier error could mean that they cannot read the object.
func (v *Version) validateRules(ctx context.Context, before field.ErrorList, u, old *unstructured.Unstructured, opts ...cel.Option) field.ErrorList {
	if v.rules == nil {
		return nil
	}
	for _, err := range before {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
		}
	}
	var oldObject any
	if old != nil {
		oldObject = old.Object
	}
	errs, _ := v.rules.Validate(ctx, nil, v.schema, u.Object, oldObject, celconfig.RuntimeCELCostBudget, opts...)
	return errs
}

// validateScale checks the fields that the scale subresource reads.
func (v *Version) validateScale(u *unstructured.Unstructured, spec bool) field.ErrorList {
	if v.scale == nil {
		return nil
	}
	var errs field.ErrorList
	if spec {
		errs = append(errs, validateReplicas(u, v.scale.SpecReplicasPath)...)
	}
	errs = append(errs, validateReplicas(u, v.scale.StatusReplicasPath)...)
	if path := v.scale.LabelSelectorPath; path != nil {
		if s, _, err := unstructured.NestedString(u.Object, strings.Split(strings.TrimPrefix(*path, "."), ".")...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), s, err.Error()))
		}
	}
	return errs
}

func validateReplicas(u *unstructured.Unstructured, path string) field.ErrorList {
	at := field.NewPath(path)
	switch n, _, err := unstructured.NestedInt64(u.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...); {
	case err != nil:
		return field.ErrorList{field.Invalid(at, n, err.Error())}
	case n < 0:
		return field.ErrorList{field.Invalid(at, n, "should be a non-negative integer")}
	case n > math.MaxInt32:
		return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}
