// SPDX-License-Identifier: Apache-2.0

package podtolerationrestriction

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
)

// A Config contains the tolerations for namespaces without the annotations, in the format of the original's
// configuration file. The zero value adds no tolerations and allows all.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// Default lists the tolerations that are added to new Pods.
	Default []corev1.Toleration `json:"default,omitempty"`
	// Whitelist lists the tolerations that Pods may have. If it is empty, Pods may have any.
	Whitelist []corev1.Toleration `json:"whitelist,omitempty"`
}

const (
	apiVersion = "podtolerationrestriction.admission.k8s.io/v1alpha1"
	kind       = "Configuration"
)

// Load reads a configuration file of the original. The error names the file, the line and the field.
func Load(file string) (Config, error) {
	return configfile.Load(file, configfile.Type{APIVersions: []string{apiVersion}, Kind: kind}, (*Config).check)
}

// check returns an error for each invalid toleration, and for each default that the whitelist denies.
func (c *Config) check() (errs field.ErrorList) {
	for i, t := range c.Default {
		at := field.NewPath("default").Index(i)
		errs = append(errs, check(t, at)...)
		if len(c.Whitelist) > 0 && !allAllowed(c.Default[i:i+1], c.Whitelist) {
			errs = append(errs, field.Invalid(at, t.Key, "the whitelist does not allow this toleration, so every Pod without annotations on its namespace would be denied: allow it, or remove it"))
		}
	}
	for i, t := range c.Whitelist {
		errs = append(errs, check(t, field.NewPath("whitelist").Index(i))...)
	}
	return errs
}

// check returns an error for each invalid field of a toleration, like the validation of the API server.
func check(t corev1.Toleration, at *field.Path) (errs field.ErrorList) {
	if t.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
	} else if t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		if problems := validation.IsValidLabelValue(t.Value); len(problems) > 0 {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Value, strings.Join(problems, ";")))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect,
			[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
	}
	return errs
}
