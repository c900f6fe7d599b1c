// SPDX-License-Identifier: Apache-2.0

// Package manifest converts webhook configurations, as webhook.Configurations returns them, into
// other forms: v1beta1 for API servers that do not serve v1, and static manifests, which an API
// server reads from files.
//
// The functions do not change their arguments, and the results share no memory with them. For a nil
// argument the result is nil.
package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// StaticSuffix is the required suffix of the names of static manifests. An API server that reads
// static manifests refuses such names in its API.
const StaticSuffix = ".static.k8s.io"

// Static returns the objects for manifest-based admission (KEP-5793): an API server of version 1.36
// or later reads them from files before it serves requests. In 1.36 this needs the feature gate
// ManifestBasedAdmissionControlConfig. Static adds the required suffix to the names. A webhook with
// a Service is an error, since static manifests allow only URLs.
//
// The API server needs the two kinds in separate folders, which apiserverauth.Files configures. It
// calls these webhooks before all others, and also for webhook configurations and admission
// policies.
func Static(mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) (
	*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	mutating, validating = mutating.DeepCopy(), validating.DeepCopy()
	var errs []error
	if mutating != nil {
		errs = append(errs, staticName(&mutating.ObjectMeta))
		for _, w := range mutating.Webhooks {
			errs = append(errs, byURL(w.Name, w.ClientConfig))
		}
	}
	if validating != nil {
		errs = append(errs, staticName(&validating.ObjectMeta))
		for _, w := range validating.Webhooks {
			errs = append(errs, byURL(w.Name, w.ClientConfig))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return mutating, validating, nil
}

func staticName(meta *metav1.ObjectMeta) error {
	meta.Name = strings.TrimSuffix(meta.Name, StaticSuffix) + StaticSuffix
	for _, problem := range validation.IsDNS1123Subdomain(meta.Name) {
		return fmt.Errorf("configuration name %q: %s", meta.Name, problem)
	}
	return nil
}

func byURL(name string, c admissionregistrationv1.WebhookClientConfig) error {
	if c.Service != nil || c.URL == nil {
		return fmt.Errorf("webhook %s is served by a Service: a static manifest needs a URL", name)
	}
	return nil
}

// V1beta1 returns the objects for API servers before 1.16, which serve only v1beta1. API servers
// up to 1.21 serve it. Every field is explicit, because the defaults of v1beta1 differ: an unset
// field gets the default of v1, if v1 has one.
//
// A webhook with matchConditions is an error: API servers that serve v1beta1 drop them, and would
// call it too often. Before 1.21, namespaces have no label kubernetes.io/metadata.name unless a
// user adds it. Without the label, the namespaceSelector of webhook.Configurations excludes
// nothing.
func V1beta1(mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) (
	*v1beta1.MutatingWebhookConfiguration, *v1beta1.ValidatingWebhookConfiguration, error) {
	mutating, validating = mutating.DeepCopy(), validating.DeepCopy() // the result shares memory with the copies
	var errs []error
	var oldMutating *v1beta1.MutatingWebhookConfiguration
	if mutating != nil {
		oldMutating = &v1beta1.MutatingWebhookConfiguration{ObjectMeta: mutating.ObjectMeta}
		oldMutating.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
		for _, w := range mutating.Webhooks {
			errs = append(errs, noConditions(w.Name, w.MatchConditions))
			oldMutating.Webhooks = append(oldMutating.Webhooks, mutatingWebhook(w))
		}
	}
	var oldValidating *v1beta1.ValidatingWebhookConfiguration
	if validating != nil {
		oldValidating = &v1beta1.ValidatingWebhookConfiguration{ObjectMeta: validating.ObjectMeta}
		oldValidating.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
		for _, w := range validating.Webhooks {
			errs = append(errs, noConditions(w.Name, w.MatchConditions))
			oldValidating.Webhooks = append(oldValidating.Webhooks, validatingWebhook(w))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return oldMutating, oldValidating, nil
}

func noConditions(name string, conditions []admissionregistrationv1.MatchCondition) error {
	if len(conditions) > 0 {
		return fmt.Errorf("webhook %s has matchConditions: API servers that serve v1beta1 drop them, and would call the webhook too often", name)
	}
	return nil
}

func mutatingWebhook(w admissionregistrationv1.MutatingWebhook) v1beta1.MutatingWebhook {
	return v1beta1.MutatingWebhook{
		Name:                    w.Name,
		ClientConfig:            clientConfig(w.ClientConfig),
		Rules:                   rules(w.Rules),
		FailurePolicy:           as(w.FailurePolicy, v1beta1.Fail),
		MatchPolicy:             as(w.MatchPolicy, v1beta1.Equivalent),
		NamespaceSelector:       cmp.Or(w.NamespaceSelector, &metav1.LabelSelector{}),
		ObjectSelector:          cmp.Or(w.ObjectSelector, &metav1.LabelSelector{}),
		SideEffects:             as(w.SideEffects, v1beta1.SideEffectClassUnknown),
		TimeoutSeconds:          cmp.Or(w.TimeoutSeconds, new(int32(10))),
		AdmissionReviewVersions: reviewVersions(w.AdmissionReviewVersions),
		ReinvocationPolicy:      as(w.ReinvocationPolicy, v1beta1.NeverReinvocationPolicy),
	}
}

func validatingWebhook(w admissionregistrationv1.ValidatingWebhook) v1beta1.ValidatingWebhook {
	return v1beta1.ValidatingWebhook{
		Name:                    w.Name,
		ClientConfig:            clientConfig(w.ClientConfig),
		Rules:                   rules(w.Rules),
		FailurePolicy:           as(w.FailurePolicy, v1beta1.Fail),
		MatchPolicy:             as(w.MatchPolicy, v1beta1.Equivalent),
		NamespaceSelector:       cmp.Or(w.NamespaceSelector, &metav1.LabelSelector{}),
		ObjectSelector:          cmp.Or(w.ObjectSelector, &metav1.LabelSelector{}),
		SideEffects:             as(w.SideEffects, v1beta1.SideEffectClassUnknown),
		TimeoutSeconds:          cmp.Or(w.TimeoutSeconds, new(int32(10))),
		AdmissionReviewVersions: reviewVersions(w.AdmissionReviewVersions),
	}
}

// as converts a pointer to a constant to the type of the other API version. For a nil pointer it
// returns a pointer to the value otherwise.
func as[To, From ~string](value *From, otherwise To) *To {
	if value == nil {
		return &otherwise
	}
	return new(To(*value))
}

func reviewVersions(versions []string) []string {
	if len(versions) == 0 {
		return []string{"v1beta1"}
	}
	return versions
}

func clientConfig(c admissionregistrationv1.WebhookClientConfig) v1beta1.WebhookClientConfig {
	old := v1beta1.WebhookClientConfig{URL: c.URL, CABundle: c.CABundle}
	if s := c.Service; s != nil {
		old.Service = &v1beta1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: cmp.Or(s.Port, new(int32(443)))}
	}
	return old
}

func rules(all []admissionregistrationv1.RuleWithOperations) []v1beta1.RuleWithOperations {
	for i := range all {
		all[i].Scope = cmp.Or(all[i].Scope, new(admissionregistrationv1.AllScopes))
	}
	return all
}
