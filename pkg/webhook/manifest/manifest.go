// SPDX-License-Identifier: Apache-2.0

// Package manifest converts webhook configurations, as webhook.Configurations returns them, into
// other forms: v1beta1 for API servers that do not serve v1, and static manifests, which an API
// server reads from files.
//
// The functions do not change their arguments, and the results share no memory with them. For a nil
// argument the result is nil.
package manifest

import (
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
// A webhook with matchConditions is an error: API servers that serve v1beta1 drop the conditions, and would also call
// the webhook for the requests that the conditions exclude. Before 1.21, namespaces have no label
// kubernetes.io/metadata.name unless a user adds it. Without the label, the namespaceSelector of webhook.Configurations
// excludes nothing.
func V1beta1(mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) (
	*v1beta1.MutatingWebhookConfiguration, *v1beta1.ValidatingWebhookConfiguration, error) {
	var errs []error
	var oldMutating *v1beta1.MutatingWebhookConfiguration
	if mutating != nil {
		oldMutating = &v1beta1.MutatingWebhookConfiguration{}
		errs = append(errs, convert(mutating, oldMutating, mutatingKind))
	}
	var oldValidating *v1beta1.ValidatingWebhookConfiguration
	if validating != nil {
		oldValidating = &v1beta1.ValidatingWebhookConfiguration{}
		errs = append(errs, convert(validating, oldValidating, validatingKind))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return oldMutating, oldValidating, nil
}

const mutatingKind, validatingKind = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"

// convert converts a configuration to the type of v1beta1. Both versions have the same JSON.
func convert(configuration any, old runtime.Object, kind string) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return err
	}
	var errs []error
	webhooks, _ := content["webhooks"].([]any)
	for _, entry := range webhooks {
		webhook, _ := entry.(map[string]any)
		if webhook["matchConditions"] != nil {
			errs = append(errs, fmt.Errorf("webhook %s has matchConditions: API servers that serve v1beta1 drop them, and would call the webhook too often", webhook["name"]))
		}
		setDefaults(webhook, kind == mutatingKind)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	content["apiVersion"], content["kind"] = v1beta1.SchemeGroupVersion.String(), kind
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, old)
}

// setDefaults sets every unset field of a webhook to the default of v1, or to that of v1beta1 if v1 has none.
func setDefaults(webhook map[string]any, mutating bool) {
	setDefault(webhook, "failurePolicy", string(v1beta1.Fail))
	setDefault(webhook, "matchPolicy", string(v1beta1.Equivalent))
	setDefault(webhook, "namespaceSelector", map[string]any{})
	setDefault(webhook, "objectSelector", map[string]any{})
	setDefault(webhook, "sideEffects", string(v1beta1.SideEffectClassUnknown))
	setDefault(webhook, "timeoutSeconds", int64(10))
	if mutating {
		setDefault(webhook, "reinvocationPolicy", string(v1beta1.NeverReinvocationPolicy))
	}
	if versions, _ := webhook["admissionReviewVersions"].([]any); len(versions) == 0 {
		webhook["admissionReviewVersions"] = []any{"v1beta1"}
	}
	if service, set, _ := unstructured.NestedMap(webhook, "clientConfig", "service"); set {
		setDefault(service, "port", int64(443))
		_ = unstructured.SetNestedMap(webhook, service, "clientConfig", "service") // the parents exist
	}
	rules, _ := webhook["rules"].([]any)
	for _, entry := range rules {
		if rule, ok := entry.(map[string]any); ok {
			setDefault(rule, "scope", string(v1beta1.AllScopes))
		}
	}
}

func setDefault(object map[string]any, field string, value any) {
	if object[field] == nil {
		object[field] = value
	}
}
