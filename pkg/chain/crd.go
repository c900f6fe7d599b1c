// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
)

// A customResource is what a CustomResourceDefinition says, as the API server compiles it.
type customResource struct {
	definition *apiextensionsv1.CustomResourceDefinition
	versions   map[string]*customVersion
	schemas    map[string]*structuralschema.Structural
	convertor  runtime.ObjectConvertor
}

type customVersion struct {
	kind               schema.GroupVersionKind
	namespaced, served bool
	schema             *structuralschema.Structural
	all, status        apiservervalidation.SchemaValidator
	rules              *structuralcel.Validator
	hasStatus          bool
	scale              *apiextensionsv1.CustomResourceSubresourceScale
	deprecation        string // the warning
}

// definitions is the scheme of CustomResourceDefinitions, with their defaults and internal version.
var definitions = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
})

// newCustomResource compiles a definition, or says what the API server would refuse in it.
func newCustomResource(d *apiextensionsv1.CustomResourceDefinition) (*customResource, error) {
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
	r := &customResource{definition: d, versions: map[string]*customVersion{}, schemas: map[string]*structuralschema.Structural{}}
	for _, v := range d.Spec.Versions {
		version, err := newCustomVersion(d, v.Name)
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s, version %s: %w", d.Name, v.Name, err)
		}
		version.served = v.Served
		if v.Deprecated {
			version.deprecation = deprecation(d, v)
		}
		r.versions[v.Name], r.schemas[v.Name] = version, version.schema
	}
	return r, nil
}

func newCustomVersion(d *apiextensionsv1.CustomResourceDefinition, name string) (*customVersion, error) {
	v := &customVersion{
		kind:       schema.GroupVersionKind{Group: d.Spec.Group, Version: name, Kind: d.Spec.Names.Kind},
		namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}
	subresources, err := apihelpers.GetSubresourcesForVersion(d, name)
	if err != nil {
		return nil, err
	}
	if subresources != nil {
		v.hasStatus, v.scale = subresources.Status != nil, subresources.Scale
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
	if status, ok := internal.OpenAPIV3Schema.Properties["status"]; ok && v.hasStatus {
		if v.status, _, err = apiservervalidation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	v.rules = structuralcel.NewValidator(v.schema, true, celconfig.PerCallLimit)
	return v, nil
}

// deprecation is the API server's warning of a deprecated version.
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

// convertible gives custom resources their converters: conversion webhooks are called like others.
func (c *Chain) convertible() error {
	if len(c.objects.custom) == 0 {
		return nil
	}
	for _, r := range c.objects.custom {
		w := r.definition.Spec.Conversion
		if w.Strategy != apiextensionsv1.WebhookConverter {
			continue
		}
		config := admissionregistrationv1.WebhookClientConfig{URL: w.Webhook.ClientConfig.URL, CABundle: w.Webhook.ClientConfig.CABundle}
		if s := w.Webhook.ClientConfig.Service; s != nil {
			config.Service = &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
		}
		handler := c.conversions[r.definition.Name]
		completeClientConfig(&config, r.definition.Name, handler)
		h := &hook{endpoint: newEndpoint(config, "conversion", len(c.clients.hooks), handler)}
		c.clients.hooks[h.key] = h
		config = h.clientConfig(config)
		w.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: config.URL, CABundle: config.CABundle}
	}
	factory, err := conversion.NewCRConverterFactory(webhookutil.NewDefaultServiceResolver(), c.clients.wrap)
	if err != nil {
		return err
	}
	for _, r := range c.objects.custom {
		if r.convertor, _, err = factory.NewConverter(r.definition); err != nil {
			return err
		}
	}
	return nil
}
