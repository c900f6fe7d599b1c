// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxMatchConditions is the API server's limit (validateMatchConditions).
const maxMatchConditions = 64

// Validate checks a registration by the rules of the API server, validateMutatingWebhook and validateValidatingWebhook,
// so that a mistake stops the program. It is stricter in three places. A hook needs rules with plausible group and
// resource names, since it would never be called otherwise. Overlapping resources are an error in every order. The
// namespace of a service must be valid, since the default namespaceSelector uses it. See CheckRules for the checks that
// depend on the handler's type.
func (r *Registration) Validate() field.ErrorList {
	at := r.FieldPath()
	errs := validation.IsFullyQualifiedName(at.Child("name"), r.Name)
	errs = append(errs, validateRules(at.Child("rules"), r.Rules)...)
	errs = append(errs, oneOf(at.Child("failurePolicy"), *r.FailurePolicy, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	errs = append(errs, oneOf(at.Child("matchPolicy"), *r.MatchPolicy, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)...)
	errs = append(errs, r.validateSideEffects()...)
	if r.ReinvocationPolicy != nil {
		errs = append(errs, oneOf(at.Child("reinvocationPolicy"), *r.ReinvocationPolicy,
			admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy)...)
	}
	errs = append(errs, r.validateTimeout()...)
	opts := metav1validation.LabelSelectorValidationOptions{}
	if r.NamespaceSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(r.NamespaceSelector, opts, at.Child("namespaceSelector"))...)
	}
	errs = append(errs, metav1validation.ValidateLabelSelector(r.ObjectSelector, opts, at.Child("objectSelector"))...)
	errs = append(errs, validateReviewVersions(at.Child("admissionReviewVersions"), r.AdmissionReviewVersions)...)
	errs = append(errs, r.validateMatchConditions(at.Child("matchConditions"))...)
	return append(errs, r.validateClientConfig(at.Child("clientConfig"))...)
}

// ValidateForServing checks only the fields that a hook uses when it answers calls: timeoutSeconds, sideEffects and
// rules. Unlike Validate, it accepts a registration without rules.
func (r *Registration) ValidateForServing() field.ErrorList {
	var errs field.ErrorList
	if len(r.Rules) > 0 {
		errs = validateRules(r.FieldPath().Child("rules"), r.Rules)
	}
	return append(append(errs, r.validateSideEffects()...), r.validateTimeout()...)
}

func (r *Registration) validateSideEffects() field.ErrorList {
	return oneOf(r.FieldPath().Child("sideEffects"), *r.SideEffects,
		admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)
}

func (r *Registration) validateTimeout() field.ErrorList {
	if s := *r.TimeoutSeconds; s < 1 || s > 30 {
		return field.ErrorList{field.Invalid(r.FieldPath().Child("timeoutSeconds"), s, "must be between 1 and 30")}
	}
	return nil
}

// FieldPath returns the root of the paths in errors, such as mutating[a.example.com].
func (r *Registration) FieldPath() *field.Path {
	return field.NewPath(r.webhookType()).Key(r.Name)
}

func (r *Registration) webhookType() string {
	if r.Mutating {
		return "mutating"
	}
	return "validating"
}

func oneOf[S ~string](at *field.Path, value S, valid ...S) field.ErrorList {
	if slices.Contains(valid, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, valid)}
}

func validateRules(at *field.Path, rules []admissionregistrationv1.RuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	if len(rules) == 0 {
		errs = append(errs, field.Required(at, "a hook without rules is never called"))
	}
	for i, rule := range rules {
		errs = append(errs, validateRule(at.Index(i), rule)...)
	}
	return errs
}

func validateRule(at *field.Path, rule admissionregistrationv1.RuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, wildcardAlone(at.Child("operations"), rule.Operations, "*")...)
	for i, op := range rule.Operations {
		errs = append(errs, oneOf(at.Child("operations").Index(i), op, admissionregistrationv1.Create, admissionregistrationv1.Update,
			admissionregistrationv1.Delete, admissionregistrationv1.Connect, admissionregistrationv1.OperationAll)...)
	}
	errs = append(errs, wildcardAlone(at.Child("apiGroups"), rule.APIGroups, "*")...)
	errs = append(errs, plausible(at, rule)...)
	errs = append(errs, wildcardAlone(at.Child("apiVersions"), rule.APIVersions, "*")...)
	errs = append(errs, notEmpty(at.Child("apiVersions"), rule.APIVersions)...)
	errs = append(errs, wildcardAlone(at.Child("resources"), rule.Resources, "*/*")...)
	errs = append(errs, notEmpty(at.Child("resources"), rule.Resources)...)
	errs = append(errs, validateOverlaps(at.Child("resources"), rule.Resources)...)
	return append(errs, oneOf(at.Child("scope"), *rule.Scope, admissionregistrationv1.ClusterScope,
		admissionregistrationv1.NamespacedScope, admissionregistrationv1.AllScopes)...)
}

var (
	resourceName = regexp.MustCompile(`^(\*|[a-z0-9.-]+)(/(\*|[a-z0-9.-]+))?$`)
	groupName    = regexp.MustCompile(`^(\*|[a-z0-9.-]*)$`)
)

// plausible returns errors for names that the API server accepts but no resource has. With such a name in its rules,
// the hook would never be called.
func plausible(at *field.Path, rule admissionregistrationv1.RuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	for i, group := range rule.APIGroups {
		switch {
		case group == "core":
			errs = append(errs, field.Invalid(at.Child("apiGroups").Index(i), group, `the core group is written ""`))
		case !groupName.MatchString(group):
			errs = append(errs, field.Invalid(at.Child("apiGroups").Index(i), group, `want a group such as "apps", without a version`))
		}
	}
	for i, version := range rule.APIVersions {
		if version != "*" && version != "" && len(validation.IsDNS1035Label(version)) > 0 {
			errs = append(errs, field.Invalid(at.Child("apiVersions").Index(i), version, `want a version such as "v1"`))
		}
	}
	for i, resource := range rule.Resources {
		if resource != "" && !resourceName.MatchString(resource) {
			errs = append(errs, field.Invalid(at.Child("resources").Index(i), resource, `want a resource in lower case, such as "pods" or "pods/exec", not a kind`))
		}
	}
	return errs
}

func wildcardAlone[S ~string](at *field.Path, values []S, wildcard S) field.ErrorList {
	switch {
	case len(values) == 0:
		return field.ErrorList{field.Required(at, "")}
	case len(values) > 1 && slices.Contains(values, wildcard):
		return field.ErrorList{field.Invalid(at, values, fmt.Sprintf("if %q is present, it must be the only value", wildcard))}
	}
	return nil
}

func notEmpty(at *field.Path, values []string) field.ErrorList {
	var errs field.ErrorList
	for i, v := range values {
		if v == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
		}
	}
	return errs
}

// validateOverlaps returns errors for resources that a wildcard already covers. The API server
// refuses them in some orders only, and Configurations keeps the order of the author.
func validateOverlaps(at *field.Path, resources []string) field.ErrorList {
	all := sets.New(resources...)
	var errs field.ErrorList
	for i, resource := range resources {
		name, sub, hasSub := strings.Cut(resource, "/")
		switch {
		case !hasSub && resource != "*" && all.Has("*"):
			errs = append(errs, field.Invalid(at.Index(i), resource, `"*" already covers it`))
		case hasSub && sub != "*" && all.Has(name+"/*"):
			errs = append(errs, field.Invalid(at.Index(i), resource, fmt.Sprintf("%q already covers it", name+"/*")))
		case hasSub && name != "*" && all.Has("*/"+sub):
			errs = append(errs, field.Invalid(at.Index(i), resource, fmt.Sprintf("%q already covers it", "*/"+sub)))
		case hasSub && (name == "*" || sub == "*") && slices.Contains(resources[:i], resource):
			errs = append(errs, field.Duplicate(at.Index(i), resource))
		}
	}
	return errs
}

func validateReviewVersions(at *field.Path, versions []string) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(at, "must name v1 or v1beta1")}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, v := range versions {
		if seen.Has(v) {
			errs = append(errs, field.Duplicate(at.Index(i), v))
		}
		seen.Insert(v)
		for _, problem := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(at.Index(i), v, problem))
		}
	}
	if !seen.HasAny("v1", "v1beta1") {
		errs = append(errs, field.Invalid(at, versions, "must include v1 or v1beta1"))
	}
	return errs
}

func (r *Registration) validateMatchConditions(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(r.MatchConditions); n > maxMatchConditions {
		errs = append(errs, field.TooMany(at, n, maxMatchConditions))
	}
	seen := sets.New[string]()
	for i, c := range r.MatchConditions {
		if strings.TrimSpace(c.Expression) == "" {
			errs = append(errs, field.Required(at.Index(i).Child("expression"), ""))
		}
		if c.Name == "" {
			errs = append(errs, field.Required(at.Index(i).Child("name"), ""))
			continue
		}
		for _, problem := range validation.IsQualifiedName(c.Name) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), c.Name, problem))
		}
		if seen.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), c.Name))
		}
		seen.Insert(c.Name)
	}
	return errs
}

// JoinFields joins field errors, so that errors.As and Unwrap find each of them. It returns nil for
// an empty list.
func JoinFields(list field.ErrorList) error {
	errs := make([]error, len(list))
	for i, err := range list {
		errs[i] = err
	}
	return errors.Join(errs...)
}
