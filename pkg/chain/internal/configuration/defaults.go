// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// DefaultMutating sets the defaults of a mutating webhook, as SetDefaults_MutatingWebhook does.
func DefaultMutating(h *admissionregistrationv1.MutatingWebhook, handler http.Handler) {
	h.FailurePolicy = orDefault(h.FailurePolicy, admissionregistrationv1.Fail)
	h.MatchPolicy = orDefault(h.MatchPolicy, admissionregistrationv1.Equivalent)
	h.ReinvocationPolicy = orDefault(h.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	h.NamespaceSelector = orDefault(h.NamespaceSelector, metav1.LabelSelector{})
	h.ObjectSelector = orDefault(h.ObjectSelector, metav1.LabelSelector{})
	h.TimeoutSeconds = orDefault(h.TimeoutSeconds, 10)
	defaultRules(h.Rules)
	DefaultClientConfig(&h.ClientConfig, h.Name, handler)
}

// DefaultValidating sets the defaults of a validating webhook, as SetDefaults_ValidatingWebhook does.
func DefaultValidating(h *admissionregistrationv1.ValidatingWebhook, handler http.Handler) {
	h.FailurePolicy = orDefault(h.FailurePolicy, admissionregistrationv1.Fail)
	h.MatchPolicy = orDefault(h.MatchPolicy, admissionregistrationv1.Equivalent)
	h.NamespaceSelector = orDefault(h.NamespaceSelector, metav1.LabelSelector{})
	h.ObjectSelector = orDefault(h.ObjectSelector, metav1.LabelSelector{})
	h.TimeoutSeconds = orDefault(h.TimeoutSeconds, 10)
	defaultRules(h.Rules)
	DefaultClientConfig(&h.ClientConfig, h.Name, handler)
}

func defaultRules(rules []admissionregistrationv1.RuleWithOperations) {
	for i := range rules {
		rules[i].Scope = orDefault(rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

// DefaultClientConfig sets the port of a Service. For a webhook with a handler, it also sets a URL if there is no
// address, and removes the caBundle, because the engine does not dial the webhook.
func DefaultClientConfig(c *admissionregistrationv1.WebhookClientConfig, name string, handler http.Handler) {
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
