// SPDX-License-Identifier: Apache-2.0

// Package configuration sets the defaults of webhook configurations and validates them as the API server does.
package configuration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"github.com/admitkit/admitkit/internal/celcondition"
)

// The rules in this file copy ValidateMutatingWebhookConfiguration and ValidateValidatingWebhookConfiguration of the
// API server, including their quirks. The package of the originals cannot be imported.

const maxMatchConditions = 64

// ValidateMutating returns the errors for which the API server rejects a mutating configuration.
func ValidateMutating(c *admissionregistrationv1.MutatingWebhookConfiguration) field.ErrorList {
	at := RootPath(MutatingKind, c.Name)
	errs := validateMeta(&c.ObjectMeta, at)
	seen := sets.New[string]()
	for i := range c.Webhooks {
		h := c.Webhooks[i]
		at := at.Child("webhooks").Index(i)
		errs = append(errs, validateWebhook(at, seen, admissionregistrationv1.ValidatingWebhook{
			Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy, MatchPolicy: h.MatchPolicy,
			NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector, SideEffects: h.SideEffects,
			TimeoutSeconds: h.TimeoutSeconds, AdmissionReviewVersions: h.AdmissionReviewVersions, MatchConditions: h.MatchConditions,
		})...)
		errs = append(errs, oneOf(at.Child("reinvocationPolicy"), *h.ReinvocationPolicy,
			admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
	}
	return errs
}

// ValidateValidating returns the errors for which the API server rejects a validating configuration.
func ValidateValidating(c *admissionregistrationv1.ValidatingWebhookConfiguration) field.ErrorList {
	at := RootPath(ValidatingKind, c.Name)
	errs := validateMeta(&c.ObjectMeta, at)
	seen := sets.New[string]()
	for i := range c.Webhooks {
		errs = append(errs, validateWebhook(at.Child("webhooks").Index(i), seen, c.Webhooks[i])...)
	}
	return errs
}

func validateMeta(m *metav1.ObjectMeta, at *field.Path) field.ErrorList {
	return apivalidation.ValidateObjectMeta(m, false, apivalidation.NameIsDNSSubdomain, at.Child("metadata"))
}

// validateWebhook checks a webhook whose defaults are set.
func validateWebhook(at *field.Path, seen sets.Set[string], h admissionregistrationv1.ValidatingWebhook) field.ErrorList {
	errs := validation.IsFullyQualifiedName(at.Child("name"), h.Name)
	if h.Name != "" && seen.Has(h.Name) {
		errs = append(errs, field.Duplicate(at.Child("name"), h.Name))
	}
	seen.Insert(h.Name)
	for i, rule := range h.Rules {
		errs = append(errs, validateRule(at.Child("rules").Index(i), rule)...)
	}
	errs = append(errs, oneOf(at.Child("failurePolicy"), *h.FailurePolicy, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	errs = append(errs, oneOf(at.Child("matchPolicy"), *h.MatchPolicy, admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)...)
	if h.SideEffects == nil {
		errs = append(errs, field.Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	} else {
		errs = append(errs, oneOf(at.Child("sideEffects"), *h.SideEffects,
			admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)...)
	}
	if s := *h.TimeoutSeconds; s < 1 || s > 30 {
		errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), s, "the timeout value must be between 1 and 30 seconds"))
	}
	opts := metav1validation.LabelSelectorValidationOptions{}
	errs = append(errs, metav1validation.ValidateLabelSelector(h.NamespaceSelector, opts, at.Child("namespaceSelector"))...)
	errs = append(errs, metav1validation.ValidateLabelSelector(h.ObjectSelector, opts, at.Child("objectSelector"))...)
	errs = append(errs, validateClientConfig(at.Child("clientConfig"), h.ClientConfig)...)
	errs = append(errs, validateReviewVersions(at.Child("admissionReviewVersions"), h.AdmissionReviewVersions)...)
	return append(errs, validateMatchConditions(at.Child("matchConditions"), h.MatchConditions)...)
}

func validateClientConfig(at *field.Path, c admissionregistrationv1.WebhookClientConfig) field.ErrorList {
	switch s := c.Service; {
	case (c.URL == nil) == (s == nil):
		return field.ErrorList{field.Required(at, "exactly one of url or service is required")}
	case s != nil:
		return webhookutil.ValidateWebhookService(at.Child("service"), s.Namespace, s.Name, s.Path, *s.Port)
	default:
		return webhookutil.ValidateWebhookURL(at.Child("url"), *c.URL, true)
	}
}

func oneOf[S ~string](at *field.Path, value S, valid ...S) field.ErrorList {
	if slices.Contains(valid, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, valid)}
}

func validateRule(at *field.Path, rule admissionregistrationv1.RuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, wildcardAlone(at.Child("operations"), rule.Operations)...)
	for i, op := range rule.Operations {
		errs = append(errs, oneOf(at.Child("operations").Index(i), op, admissionregistrationv1.OperationAll, admissionregistrationv1.Connect,
			admissionregistrationv1.Create, admissionregistrationv1.Delete, admissionregistrationv1.Update)...)
	}
	errs = append(errs, wildcardAlone(at.Child("apiGroups"), rule.APIGroups)...)
	errs = append(errs, wildcardAlone(at.Child("apiVersions"), rule.APIVersions)...)
	for i, version := range rule.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(at.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateResources(at.Child("resources"), rule.Resources)...)
	return append(errs, oneOf(at.Child("scope"), *rule.Scope, admissionregistrationv1.AllScopes,
		admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)...)
}

func wildcardAlone[S ~string](at *field.Path, values []S) field.ErrorList {
	switch {
	case len(values) == 0:
		return field.ErrorList{field.Required(at, "")}
	case len(values) > 1 && slices.Contains(values, "*"):
		return field.ErrorList{field.Invalid(at, values, "if '*' is present, it must be the only one")}
	}
	return nil
}

// validateResources copies the API server's function of that name, including its dependence on the order of resources.
func validateResources(at *field.Path, resources []string) field.ErrorList {
	if len(resources) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	allSubresourcesOf, subresourceOfAll := sets.New[string](), sets.New[string]()
	plain := false
	for i, resource := range resources {
		if resource == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
			continue
		}
		name, sub, hasSub := strings.Cut(resource, "/")
		if !hasSub {
			plain = resource != "*"
			continue
		}
		if allSubresourcesOf.Has(name) {
			errs = append(errs, field.Invalid(at.Index(i), resource, fmt.Sprintf("if '%s/*' is present, must not specify %s", name, resource)).WithOrigin(OverlappingResources))
		}
		if subresourceOfAll.Has(sub) {
			errs = append(errs, field.Invalid(at.Index(i), resource, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, resource)).WithOrigin(OverlappingResources))
		}
		if sub == "*" {
			allSubresourcesOf.Insert(name)
		}
		if name == "*" {
			subresourceOfAll.Insert(sub)
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(at, resources, "if '*/*' is present, must not specify other resources").WithOrigin(OverlappingResources))
	}
	if plain && slices.Contains(resources, "*") {
		errs = append(errs, field.Invalid(at, resources, "if '*' is present, must not specify other resources without subresources").WithOrigin(OverlappingResources))
	}
	return errs
}

func validateReviewVersions(at *field.Path, versions []string) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(at, "must specify one of v1, v1beta1")}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, v := range versions {
		if seen.Has(v) {
			errs = append(errs, field.Invalid(at.Index(i), v, "duplicate version"))
			continue
		}
		seen.Insert(v)
		for _, problem := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(at.Index(i), v, problem))
		}
	}
	if !seen.HasAny("v1", "v1beta1") {
		errs = append(errs, field.Invalid(at, versions, "must include at least one of v1, v1beta1"))
	}
	return errs
}

func validateMatchConditions(at *field.Path, conditions []admissionregistrationv1.MatchCondition) field.ErrorList {
	if len(conditions) > maxMatchConditions {
		return field.ErrorList{field.TooMany(at, len(conditions), maxMatchConditions)}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, c := range conditions {
		at := at.Index(i)
		if strings.TrimSpace(c.Expression) == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		} else if problem := celcondition.Problem(c.Expression); problem != "" {
			errs = append(errs, field.Invalid(at.Child("expression"), c.Expression, problem))
		}
		if c.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
			continue
		}
		for _, problem := range validation.IsQualifiedName(c.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, problem))
		}
		if seen.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		seen.Insert(c.Name)
	}
	return errs
}

// RootPath returns the prefix of the field paths in a configuration's errors.
func RootPath(kind, name string) *field.Path {
	if kind == MutatingKind {
		return field.NewPath("mutating").Key(name)
	}
	return field.NewPath("validating").Key(name)
}

// The kinds of configurations.
const (
	MutatingKind   = "MutatingWebhookConfiguration"
	ValidatingKind = "ValidatingWebhookConfiguration"
)

// OverlappingResources is the Origin of errors about overlapping resources in a rule.
const OverlappingResources = "overlapping-resources"
