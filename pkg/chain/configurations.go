// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhookplugin "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/utils/ptr"
)

// A hook is one webhook of the configurations.
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
			completeMutating(&c.Webhooks[i], w.Handlers[c.Webhooks[i].Name])
		}
		errs = append(errs, configurationErrors(mutatingKind, c.Name, validateMutating(c))...)
		all.mutating = append(all.mutating, c)
	}
	for _, c := range w.Validating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			completeValidating(&c.Webhooks[i], w.Handlers[c.Webhooks[i].Name])
		}
		errs = append(errs, configurationErrors(validatingKind, c.Name, validateValidating(c))...)
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

// completeMutating fills in what SetDefaults_MutatingWebhook of the API server does.
func completeMutating(h *admissionregistrationv1.MutatingWebhook, handler http.Handler) {
	h.FailurePolicy = orDefault(h.FailurePolicy, admissionregistrationv1.Fail)
	h.MatchPolicy = orDefault(h.MatchPolicy, admissionregistrationv1.Equivalent)
	h.ReinvocationPolicy = orDefault(h.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	h.NamespaceSelector = orDefault(h.NamespaceSelector, metav1.LabelSelector{})
	h.ObjectSelector = orDefault(h.ObjectSelector, metav1.LabelSelector{})
	h.TimeoutSeconds = orDefault(h.TimeoutSeconds, 10)
	completeRules(h.Rules)
	completeClientConfig(&h.ClientConfig, h.Name, handler)
}

func completeValidating(h *admissionregistrationv1.ValidatingWebhook, handler http.Handler) {
	h.FailurePolicy = orDefault(h.FailurePolicy, admissionregistrationv1.Fail)
	h.MatchPolicy = orDefault(h.MatchPolicy, admissionregistrationv1.Equivalent)
	h.NamespaceSelector = orDefault(h.NamespaceSelector, metav1.LabelSelector{})
	h.ObjectSelector = orDefault(h.ObjectSelector, metav1.LabelSelector{})
	h.TimeoutSeconds = orDefault(h.TimeoutSeconds, 10)
	completeRules(h.Rules)
	completeClientConfig(&h.ClientConfig, h.Name, handler)
}

func completeRules(rules []admissionregistrationv1.RuleWithOperations) {
	for i := range rules {
		rules[i].Scope = orDefault(rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

// completeClientConfig gives a webhook with a handler an address if it has none: nobody dials
// it. Its caBundle, often a placeholder that somebody fills in, is of no use then.
func completeClientConfig(c *admissionregistrationv1.WebhookClientConfig, name string, handler http.Handler) {
	if handler != nil {
		c.CABundle = nil
		if c.URL == nil && c.Service == nil {
			c.URL = ptr.To(fmt.Sprintf("https://%s/", name))
		}
	}
	if c.Service != nil {
		c.Service.Port = orDefault(c.Service.Port, 443)
	}
}

func orDefault[T any](p *T, value T) *T {
	if p == nil {
		return &value
	}
	return p
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
