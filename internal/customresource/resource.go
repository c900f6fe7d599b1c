// SPDX-License-Identifier: Apache-2.0

// Package customresource prunes, defaults and validates custom resources by their CustomResourceDefinition, as the
// API server does.
package customresource

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// A Resource is a compiled CustomResourceDefinition.
type Resource struct {
	Definition *apiextensionsv1.CustomResourceDefinition
	Versions   map[string]*Version
}

// A Version is one version of a custom resource.
type Version struct {
	Kind               schema.GroupVersionKind
	Namespaced, Served bool
	HasStatus          bool
	Deprecation        string // the API server's warning, or empty

	schema      *structuralschema.Structural
	all, status apiservervalidation.SchemaValidator
	rules       *structuralcel.Validator
	scale       *apiextensionsv1.CustomResourceSubresourceScale
}

// definitions is the scheme of CustomResourceDefinitions, with their defaults and internal version.
var definitions = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
})

// New compiles a definition. It returns an error if the API server would reject the definition.
func New(d *apiextensionsv1.CustomResourceDefinition) (*Resource, error) {
	d = d.DeepCopy()
	definitions().Default(d)
	if len(d.Status.StoredVersions) == 0 {
		if storage, err := apihelpers.GetCRDStorageVersion(d); err == nil {
			d.Status.StoredVersions = []string{storage}
		}
	}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := definitions().Convert(d, internal, nil); err != nil {
		return nil, err
	}
	if errs := apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", d.Name, errs.ToAggregate())
	}
	r := &Resource{Definition: d, Versions: map[string]*Version{}}
	for _, v := range d.Spec.Versions {
		version, err := newVersion(d, v.Name)
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s, version %s: %w", d.Name, v.Name, err)
		}
		version.Served = v.Served
		if v.Deprecated {
			version.Deprecation = deprecation(d, v)
		}
		r.Versions[v.Name] = version
	}
	return r, nil
}

func newVersion(d *apiextensionsv1.CustomResourceDefinition, name string) (*Version, error) {
	v := &Version{
		Kind:       schema.GroupVersionKind{Group: d.Spec.Group, Version: name, Kind: d.Spec.Names.Kind},
		Namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}
	subresources, err := apihelpers.GetSubresourcesForVersion(d, name)
	if err != nil {
		return nil, err
	}
	if subresources != nil {
		v.HasStatus, v.scale = subresources.Status != nil, subresources.Scale
	}
	validation, err := apihelpers.GetSchemaForVersion(d, name)
	if err != nil {
		return nil, err
	}
	internal := &apiextensions.CustomResourceValidation{}
	if validation != nil {
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(validation, internal, nil); err != nil {
			return nil, err
		}
	}
	if internal.OpenAPIV3Schema == nil {
		return nil, errors.New("there is no schema")
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	v.schema = structural.DeepCopy()
	if err := structuraldefaulting.PruneDefaults(v.schema); err != nil {
		return nil, err
	}
	if v.all, _, err = apiservervalidation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if status, ok := internal.OpenAPIV3Schema.Properties["status"]; ok && v.HasStatus {
		if v.status, _, err = apiservervalidation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	v.rules = structuralcel.NewValidator(v.schema, true, celconfig.PerCallLimit)
	return v, nil
}

// deprecation returns the API server's warning for a deprecated version.
func deprecation(d *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion) string {
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", d.Spec.Group, v.Name, d.Spec.Names.Kind)
	if newest := newest(d, v.Name); newest != "" {
		text += fmt.Sprintf("; use %s/%s %s", d.Spec.Group, newest, d.Spec.Names.Kind)
	}
	return text
}

// newest returns the newest served version that is not deprecated, or "" if none is newer than old.
func newest(d *apiextensionsv1.CustomResourceDefinition, old string) string {
	best := ""
	for _, v := range d.Spec.Versions {
		if v.Served && !v.Deprecated && version.CompareKubeAwareVersionStrings(old, v.Name) < 0 &&
			(best == "" || version.CompareKubeAwareVersionStrings(best, v.Name) < 0) {
			best = v.Name
		}
	}
	return best
}
