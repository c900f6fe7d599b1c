// SPDX-License-Identifier: Apache-2.0

package podpreset

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// contradictions returns an error for each preset that conflicts with an earlier one, if both can select the same Pod.
// Such a Pod would get neither.
func contradictions(presets []Preset) (errs field.ErrorList) {
	var root *field.Path
	presets = withDefaults(presets)
	for i, p := range presets {
		for j, earlier := range presets[:i] {
			if p.Namespace != earlier.Namespace || !overlap(p.Spec.Selector, earlier.Spec.Selector) {
				continue
			}
			if conflicts := p.conflictsWith(earlier); len(conflicts) > 0 {
				errs = append(errs, field.Invalid(root.Index(i).Child("spec"), p.Name, fmt.Sprintf("conflicts with [%d], %s: %s: "+
					"a Pod that both select would get neither: change one, or its selector", j, earlier.Name, strings.Join(conflicts, ", "))))
			}
		}
	}
	return errs
}

// conflictsWith returns the parts of p that conflict with parts of the earlier preset.
func (p Preset) conflictsWith(earlier Preset) []string {
	add := func(presets ...Preset) (conflicts []string) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}
		for _, preset := range presets {
			conflicts = preset.addTo(pod)
		}
		return conflicts
	}
	alone := add(p)
	var conflicts []string
	for _, c := range add(earlier, p) {
		if !slices.Contains(alone, c) {
			conflicts = append(conflicts, strings.NewReplacer(" of container ", "", " in container ", "").Replace(c)) // the container has no name
		}
	}
	return conflicts
}

// overlap reports whether labels exist that match both selectors, which must be valid.
func overlap(a, b metav1.LabelSelector) bool {
	requirements := map[string][]metav1.LabelSelectorRequirement{}
	for _, s := range []metav1.LabelSelector{a, b} {
		for key, value := range s.MatchLabels {
			requirements[key] = append(requirements[key], metav1.LabelSelectorRequirement{Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
		}
		for _, r := range s.MatchExpressions {
			requirements[r.Key] = append(requirements[r.Key], r)
		}
	}
	for _, all := range requirements {
		if !satisfiable(all) {
			return false
		}
	}
	return true
}

// satisfiable reports whether a label with some value, or no label, meets all requirements for its key.
func satisfiable(all []metav1.LabelSelectorRequirement) bool {
	var in sets.Set[string] // nil allows every value
	notIn := sets.New[string]()
	var exists, absent bool
	for _, r := range all {
		switch r.Operator {
		case metav1.LabelSelectorOpIn:
			exists = true
			if values := sets.New(r.Values...); in == nil {
				in = values
			} else {
				in = in.Intersection(values)
			}
		case metav1.LabelSelectorOpNotIn:
			notIn.Insert(r.Values...)
		case metav1.LabelSelectorOpExists:
			exists = true
		case metav1.LabelSelectorOpDoesNotExist:
			absent = true
		}
	}
	return !(exists && absent) && (in == nil || in.Difference(notIn).Len() > 0)
}
