// SPDX-License-Identifier: Apache-2.0

package chain

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"github.com/admitkit/admitkit/internal/customresource"
	"github.com/admitkit/admitkit/pkg/chain/internal/configuration"
)

// A customResource is a compiled definition with the converter between its versions.
type customResource struct {
	*customresource.Resource
	convertor runtime.ObjectConvertor
}

type customVersion = customresource.Version

func newCustomResource(d *apiextensionsv1.CustomResourceDefinition) (*customResource, error) {
	r, err := customresource.New(d)
	if err != nil {
		return nil, err
	}
	return &customResource{Resource: r}, nil
}

// convertible gives custom resources their converters: conversion webhooks are called like others.
func (c *Chain) convertible() error {
	if len(c.objects.custom) == 0 {
		return nil
	}
	for _, r := range c.objects.custom {
		w := r.Definition.Spec.Conversion
		if w.Strategy != apiextensionsv1.WebhookConverter {
			continue
		}
		config := admissionregistrationv1.WebhookClientConfig{URL: w.Webhook.ClientConfig.URL, CABundle: w.Webhook.ClientConfig.CABundle}
		if s := w.Webhook.ClientConfig.Service; s != nil {
			config.Service = &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
		}
		handler := c.options.Conversions[r.Definition.Name]
		configuration.DefaultClientConfig(&config, r.Definition.Name, handler)
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
		if r.convertor, _, err = factory.NewConverter(r.Definition); err != nil {
			return err
		}
	}
	return nil
}
