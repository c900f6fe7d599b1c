// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The functions in this file set the API server's defaults of admission policies, and check their fields as
// ValidateMutatingAdmissionPolicy, ValidateValidatingAdmissionPolicy and the functions for bindings do. They do not
// check expressions.

var spec = field.NewPath("spec")

// MutatingPolicy sets the defaults of a policy and returns its errors.
func MutatingPolicy(p *admissionregistrationv1.MutatingAdmissionPolicy) field.ErrorList {
	p.Spec.FailurePolicy = orDefault(p.Spec.FailurePolicy, admissionregistrationv1.Fail)
	errs := append(validateMeta(&p.ObjectMeta, nil), matchConstraints(p.Spec.MatchConstraints)...)
	errs = append(errs, oneOf(spec.Child("failurePolicy"), *p.Spec.FailurePolicy, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	errs = append(errs, mutatingOperations(spec.Child("matchConstraints"), p.Spec.MatchConstraints)...)
	if p.Spec.ReinvocationPolicy == "" {
		errs = append(errs, field.Required(spec.Child("reinvocationPolicy"), "must be Never or IfNeeded"))
	} else {
		errs = append(errs, oneOf(spec.Child("reinvocationPolicy"), p.Spec.ReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
	}
	if len(p.Spec.Mutations) == 0 {
		errs = append(errs, field.Required(spec.Child("mutations"), "mutations must contain at least one item"))
	}
	for i, m := range p.Spec.Mutations {
		switch at := spec.Child("mutations").Index(i); {
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch == nil:
			errs = append(errs, field.Required(at.Child("jsonPatch"), "must be specified when patchType is JSONPatch"))
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration == nil:
			errs = append(errs, field.Required(at.Child("applyConfiguration"), "must be specified when patchType is ApplyConfiguration"))
		default:
			errs = append(errs, oneOf(at.Child("patchType"), m.PatchType, admissionregistrationv1.PatchTypeApplyConfiguration, admissionregistrationv1.PatchTypeJSONPatch)...)
		}
	}
	return errs
}

// ValidatingPolicy sets the defaults of a policy and returns its errors.
func ValidatingPolicy(p *admissionregistrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	p.Spec.FailurePolicy = orDefault(p.Spec.FailurePolicy, admissionregistrationv1.Fail)
	errs := append(validateMeta(&p.ObjectMeta, nil), matchConstraints(p.Spec.MatchConstraints)...)
	errs = append(errs, oneOf(spec.Child("failurePolicy"), *p.Spec.FailurePolicy, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	if len(p.Spec.Validations)+len(p.Spec.AuditAnnotations) == 0 {
		errs = append(errs, field.Required(spec.Child("validations"), "validations or auditAnnotations must contain at least one item"))
	}
	return errs
}

// MutatingBinding sets the defaults of a binding and returns its errors.
func MutatingBinding(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	errs := binding(&b.ObjectMeta, b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
	return append(errs, mutatingOperations(spec.Child("matchResources"), b.Spec.MatchResources)...)
}

// ValidatingBinding sets the defaults of a binding and returns its errors.
func ValidatingBinding(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	errs := binding(&b.ObjectMeta, b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
	at := spec.Child("validationActions")
	for i, action := range b.Spec.ValidationActions {
		errs = append(errs, oneOf(at.Index(i), action, admissionregistrationv1.Audit, admissionregistrationv1.Deny, admissionregistrationv1.Warn)...)
		if slices.Contains(b.Spec.ValidationActions[:i], action) {
			errs = append(errs, field.Duplicate(at.Index(i), action))
		}
	}
	switch actions := b.Spec.ValidationActions; {
	case len(actions) == 0:
		errs = append(errs, field.Required(at, "at least one validation action is required"))
	case slices.Contains(actions, admissionregistrationv1.Deny) && slices.Contains(actions, admissionregistrationv1.Warn):
		errs = append(errs, field.Invalid(at, actions, "must not contain both Deny and Warn"))
	}
	return errs
}

func binding(m *metav1.ObjectMeta, policy string, ref *admissionregistrationv1.ParamRef, resources *admissionregistrationv1.MatchResources) field.ErrorList {
	errs := validateMeta(m, nil)
	if policy == "" {
		errs = append(errs, field.Required(spec.Child("policyName"), ""))
	}
	errs = append(errs, matchResources(spec.Child("matchResources"), resources)...)
	if ref == nil {
		return errs
	}
	at := spec.Child("paramRef")
	switch {
	case ref.Name != "" && ref.Selector != nil:
		errs = append(errs, field.Forbidden(at.Child("name"), "name and selector are mutually exclusive"))
	case ref.Name == "" && ref.Selector == nil:
		errs = append(errs, field.Required(at, "one of name or selector must be specified"))
	}
	errs = append(errs, metav1validation.ValidateLabelSelector(ref.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	if ref.ParameterNotFoundAction == nil {
		return append(errs, field.Required(at.Child("parameterNotFoundAction"), "must be Allow or Deny"))
	}
	return append(errs, oneOf(at.Child("parameterNotFoundAction"), *ref.ParameterNotFoundAction, admissionregistrationv1.AllowAction, admissionregistrationv1.DenyAction)...)
}

func matchConstraints(r *admissionregistrationv1.MatchResources) field.ErrorList {
	at := spec.Child("matchConstraints")
	switch {
	case r == nil:
		return field.ErrorList{field.Required(at, "")}
	case len(r.ResourceRules) == 0:
		return append(matchResources(at, r), field.Required(at.Child("resourceRules"), ""))
	}
	return matchResources(at, r)
}

// matchResources sets the defaults (SetDefaults_MatchResources) and returns the errors.
func matchResources(at *field.Path, r *admissionregistrationv1.MatchResources) field.ErrorList {
	if r == nil {
		return nil
	}
	r.MatchPolicy = orDefault(r.MatchPolicy, admissionregistrationv1.Equivalent)
	r.NamespaceSelector = orDefault(r.NamespaceSelector, metav1.LabelSelector{})
	r.ObjectSelector = orDefault(r.ObjectSelector, metav1.LabelSelector{})
	errs := oneOf(at.Child("matchPolicy"), *r.MatchPolicy, admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)
	opts := metav1validation.LabelSelectorValidationOptions{}
	errs = append(errs, metav1validation.ValidateLabelSelector(r.NamespaceSelector, opts, at.Child("namespaceSelector"))...)
	errs = append(errs, metav1validation.ValidateLabelSelector(r.ObjectSelector, opts, at.Child("objectSelector"))...)
	for name, rules := range map[string][]admissionregistrationv1.NamedRuleWithOperations{"resourceRules": r.ResourceRules, "excludeResourceRules": r.ExcludeResourceRules} {
		for i := range rules {
			rules[i].Scope = orDefault(rules[i].Scope, admissionregistrationv1.AllScopes)
			errs = append(errs, validateRule(at.Child(name).Index(i), rules[i].RuleWithOperations)...)
		}
	}
	return errs
}

// mutatingOperations returns an error for each operation that a mutating policy cannot handle.
func mutatingOperations(at *field.Path, r *admissionregistrationv1.MatchResources) (errs field.ErrorList) {
	if r == nil {
		return nil
	}
	for i, rule := range r.ResourceRules {
		for n, op := range rule.Operations {
			errs = append(errs, oneOf(at.Child("resourceRules").Index(i).Child("operations").Index(n), op, admissionregistrationv1.OperationAll, admissionregistrationv1.Connect, admissionregistrationv1.Create, admissionregistrationv1.Update)...)
		}
	}
	return errs
}
