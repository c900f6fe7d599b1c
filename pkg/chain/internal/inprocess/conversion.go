// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
)

// AddConverters sets the converters of custom resources. handlers has the handlers of conversion webhooks by the name
// of the CustomResourceDefinition. A conversion webhook without a handler is called at its address.
func (o *Objects) AddConverters(c *Clients, handlers map[string]http.Handler) error {
	if len(o.Custom) == 0 {
		return nil
	}
	for _, r := range o.Custom {
		if r.Definition.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
			c.addConversion(r.Definition, handlers[r.Definition.Name])
		}
	}
	factory, err := conversion.NewCRConverterFactory(webhookutil.NewDefaultServiceResolver(), c.Wrap)
	if err != nil {
		return err
	}
	for _, r := range o.Custom {
		if r.convertor, _, err = factory.NewConverter(r.Definition); err != nil {
			return err
		}
	}
	return nil
}
