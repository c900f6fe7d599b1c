// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestTexts requires that every message names what it is about, and that none only says that rules were not evaluated.
func TestTexts(t *testing.T) {
	missing := field.Required(field.NewPath("spec", "size"), "")
	rule := field.Invalid(nil, "object", "size must be even")
	skipped := field.Invalid(nil, nil, "some validation rules were not checked")
	for _, tt := range []struct {
		errs field.ErrorList
		want []string
	}{
		{field.ErrorList{missing, skipped}, []string{"spec.size: Required value"}},
		{field.ErrorList{missing, rule}, []string{"spec.size: Required value", `the object: Invalid value: "object": size must be even`}},
		{field.ErrorList{skipped}, []string{"the object: Invalid value: null: some validation rules were not checked"}},
		{nil, nil},
	} {
		if got := texts(tt.errs); !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
