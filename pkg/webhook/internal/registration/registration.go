// SPDX-License-Identifier: Apache-2.0

// Package registration completes and validates the registration of a hook, and finds the kinds of
// objects that the type of its handler can hold.
package registration

import (
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// defaultTimeoutSeconds is short on purpose: the calls of all webhooks, including reinvocations, share the 34 s that
// the API server gives to one request.
const defaultTimeoutSeconds = 5

// A Registration is a webhook's registration with defaults. A validating webhook is stored as a MutatingWebhook without
// a ReinvocationPolicy, because the two types have all other fields in common.
type Registration struct {
	admissionregistrationv1.MutatingWebhook
	Mutating   bool
	ServedPath *string // set by Hook.WithPath; replaces the path of ClientConfig
}

// FromMutating returns the registration of a mutating webhook.
func FromMutating(w admissionregistrationv1.MutatingWebhook) *Registration {
	r := &Registration{Mutating: true, MutatingWebhook: *w.DeepCopy()}
	if r.ReinvocationPolicy == nil {
		r.ReinvocationPolicy = ptr.To(admissionregistrationv1.NeverReinvocationPolicy)
	}
	r.setDefaults()
	return r
}

// FromValidating returns the registration of a validating webhook.
func FromValidating(w admissionregistrationv1.ValidatingWebhook) *Registration {
	w = *w.DeepCopy()
	r := &Registration{MutatingWebhook: admissionregistrationv1.MutatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
		MatchPolicy: w.MatchPolicy, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
		MatchConditions: w.MatchConditions,
	}}
	r.setDefaults()
	return r
}

// setDefaults sets every unset field to its default, apart from the namespaceSelector. Configurations sets that field,
// because only Configurations knows the namespace of the webhook.
func (r *Registration) setDefaults() {
	if r.FailurePolicy == nil {
		r.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	}
	if r.MatchPolicy == nil {
		r.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	}
	if r.SideEffects == nil {
		r.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNone)
	}
	if r.TimeoutSeconds == nil {
		r.TimeoutSeconds = ptr.To[int32](defaultTimeoutSeconds)
	}
	if r.AdmissionReviewVersions == nil {
		r.AdmissionReviewVersions = []string{"v1", "v1beta1"}
	}
	if r.ObjectSelector == nil {
		r.ObjectSelector = &metav1.LabelSelector{}
	}
	r.SetRules(r.Rules)
}

// SetRules sets the rules. It sets the scope of each rule without one to "*", in place.
func (r *Registration) SetRules(rules []admissionregistrationv1.RuleWithOperations) {
	for i := range rules {
		if rules[i].Scope == nil {
			rules[i].Scope = ptr.To(admissionregistrationv1.AllScopes)
		}
	}
	r.Rules = rules
}

// DeclaresSideEffects reports whether sideEffects is NoneOnDryRun.
func (r *Registration) DeclaresSideEffects() bool {
	return *r.SideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun
}

// Timeout returns timeoutSeconds as a duration.
func (r *Registration) Timeout() time.Duration {
	return time.Duration(*r.TimeoutSeconds) * time.Second
}

// Path returns ServedPath, or else the path of the clientConfig, or else the default path. It has no
// trailing slash, because the API server requests the path without one.
func (r *Registration) Path() string {
	set := ""
	switch c := r.ClientConfig; {
	case r.ServedPath != nil:
		set = *r.ServedPath
	case c.Service != nil && c.Service.Path != nil:
		set = *c.Service.Path
	case c.URL != nil:
		if u, err := url.Parse(*c.URL); err == nil {
			set = u.Path
		}
	}
	switch {
	case set != "":
		return CleanPath(set)
	case r.Mutating:
		return "/mutate/" + r.Name
	default:
		return "/validate/" + r.Name
	}
}

// AsMutating returns a copy of the registration as the API type, with this clientConfig and namespaceSelector.
func (r *Registration) AsMutating(c admissionregistrationv1.WebhookClientConfig, namespaces *metav1.LabelSelector) admissionregistrationv1.MutatingWebhook {
	w := r.MutatingWebhook
	w.ClientConfig, w.NamespaceSelector = c, namespaces
	return *w.DeepCopy()
}

// AsValidating returns a copy of the registration as the API type, with this clientConfig and namespaceSelector.
func (r *Registration) AsValidating(c admissionregistrationv1.WebhookClientConfig, namespaces *metav1.LabelSelector) admissionregistrationv1.ValidatingWebhook {
	w := r.AsMutating(c, namespaces)
	return admissionregistrationv1.ValidatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
		TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
	}
}
