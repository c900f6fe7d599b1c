// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhookplugin "k8s.io/apiserver/pkg/admission/plugin/webhook"

	"github.com/admitkit/admitkit/pkg/chain/internal/configuration"
)

// A hook is one webhook of a configuration, with its address.
type hook struct {
	configuration string
	mutating      bool
	index         int // among all webhooks of its sort
	webhookplugin.WebhookAccessor
	endpoint
}

// configurations are those of a [Webhooks], as the API server would store them, in its order.
type configurations struct {
	mutating   []*admissionregistrationv1.MutatingWebhookConfiguration
	validating []*admissionregistrationv1.ValidatingWebhookConfiguration
}

// completed returns copies of the configurations with what the API server fills in, or all that
// it would refuse.
func (w Webhooks) completed() (configurations, error) {
	var all configurations
	var errs []error
	for _, c := range w.Mutating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			configuration.DefaultMutating(&c.Webhooks[i], w.Handlers[c.Webhooks[i].Name])
		}
		errs = append(errs, configurationErrors(configuration.MutatingKind, c.Name, configuration.ValidateMutating(c))...)
		all.mutating = append(all.mutating, c)
	}
	for _, c := range w.Validating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			configuration.DefaultValidating(&c.Webhooks[i], w.Handlers[c.Webhooks[i].Name])
		}
		errs = append(errs, configurationErrors(configuration.ValidatingKind, c.Name, configuration.ValidateValidating(c))...)
		all.validating = append(all.validating, c)
	}
	for _, err := range append(all.duplicates(), w.unused()...) {
		errs = append(errs, err)
	}
	// The API server calls webhooks in the order of the names of their configurations.
	slices.SortStableFunc(all.mutating, func(a, b *admissionregistrationv1.MutatingWebhookConfiguration) int {
		return cmp.Compare(a.Name, b.Name)
	})
	slices.SortStableFunc(all.validating, func(a, b *admissionregistrationv1.ValidatingWebhookConfiguration) int {
		return cmp.Compare(a.Name, b.Name)
	})
	if err := aggregate(errs); err != nil {
		return configurations{}, err
	}
	return all, nil
}

// unused finds handlers that no webhook would ever call, which is a misspelled name.
func (w Webhooks) unused() field.ErrorList {
	names := map[string]bool{}
	for _, c := range w.Mutating {
		for _, h := range c.Webhooks {
			names[h.Name] = true
		}
	}
	for _, c := range w.Validating {
		for _, h := range c.Webhooks {
			names[h.Name] = true
		}
	}
	var errs field.ErrorList
	for name := range w.Handlers {
		if !names[name] {
			errs = append(errs, field.NotFound(field.NewPath("handlers"), name))
		}
	}
	return errs
}

func (c configurations) duplicates() field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for _, m := range c.mutating {
		if seen["mutating/"+m.Name] {
			errs = append(errs, field.Duplicate(field.NewPath("mutating"), m.Name))
		}
		seen["mutating/"+m.Name] = true
	}
	for _, v := range c.validating {
		if seen["validating/"+v.Name] {
			errs = append(errs, field.Duplicate(field.NewPath("validating"), v.Name))
		}
		seen["validating/"+v.Name] = true
	}
	return errs
}

// register gives each webhook an address of its own, by which the transport knows it, and returns
// the webhooks as they were.
func (c configurations) register(handlers map[string]http.Handler) (mutating, validating []*hook) {
	for _, m := range c.mutating {
		for i := range m.Webhooks {
			w := &m.Webhooks[i]
			h := &hook{configuration: m.Name, mutating: true, index: len(mutating),
				endpoint: newEndpoint(w.ClientConfig, "mutating", len(mutating), handlers[w.Name])}
			h.WebhookAccessor = webhookplugin.NewMutatingWebhookAccessor(w.Name, m.Name, w)
			w.ClientConfig = h.clientConfig(w.ClientConfig)
			mutating = append(mutating, h)
		}
	}
	for _, v := range c.validating {
		for i := range v.Webhooks {
			w := &v.Webhooks[i]
			h := &hook{configuration: v.Name, index: len(validating),
				endpoint: newEndpoint(w.ClientConfig, "validating", len(validating), handlers[w.Name])}
			h.WebhookAccessor = webhookplugin.NewValidatingWebhookAccessor(w.Name, v.Name, w)
			w.ClientConfig = h.clientConfig(w.ClientConfig)
			validating = append(validating, h)
		}
	}
	return mutating, validating
}
