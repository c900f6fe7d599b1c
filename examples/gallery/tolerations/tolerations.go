// SPDX-License-Identifier: Apache-2.0

// Package tolerations compares and merges tolerations as the admission controllers of Kubernetes do.
package tolerations

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Merge removes each toleration that another toleration covers. Of equal tolerations it keeps the first.
func Merge(all []corev1.Toleration) []corev1.Toleration {
	var merged []corev1.Toleration
	for i, t := range all {
		covered := func(other corev1.Toleration) bool { return Covers(other, t) }
		coveredAndNotEqual := func(other corev1.Toleration) bool { return !equal(other, t) && Covers(other, t) }
		if !slices.ContainsFunc(merged, covered) && !slices.ContainsFunc(all[i+1:], coveredAndNotEqual) {
			merged = append(merged, t)
		}
	}
	return merged
}

// Covers reports whether wide tolerates every taint that t tolerates, for at least as long, by the rules of the
// originals.
func Covers(wide, t corev1.Toleration) bool {
	if equal(wide, t) {
		return true
	}
	everyKey := wide.Key == "" && wide.Operator == corev1.TolerationOpExists
	if wide.Key != t.Key && !everyKey || wide.Effect != t.Effect && wide.Effect != "" {
		return false
	}
	if limit := wide.TolerationSeconds; wide.Effect == corev1.TaintEffectNoExecute && limit != nil {
		if t.TolerationSeconds == nil || *t.TolerationSeconds > *limit {
			return false
		}
	}
	switch wide.Operator {
	case corev1.TolerationOpEqual, "": // an empty operator means Equal in wide, but not in t, as in the originals
		return t.Operator == corev1.TolerationOpEqual && t.Value == wide.Value
	case corev1.TolerationOpExists:
		return true
	}
	return false // like the originals, ignore the operators that compare numbers
}

func equal(a, b corev1.Toleration) bool { return equality.Semantic.DeepEqual(a, b) }
