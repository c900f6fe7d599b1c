// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"testing"
)

// Elements of one type are not one if they are about things of different names.
func TestSimilarNeedsOneName(t *testing.T) {
	metric := func(name string, target int64) any {
		return map[string]any{"type": "Resource", "resource": map[string]any{"name": name, "target": map[string]any{"type": "Utilization", "averageUtilization": target}}}
	}
	for _, tt := range []struct {
		a, b any
		want bool
	}{
		{metric("cpu", 75), metric("cpu", 60), true},
		{metric("cpu", 75), metric("memory", 75), false},
		{metric("cpu", 75), metric("memory", 60), false},
	} {
		if got := similar(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v: %v", tt.a, tt.b, got)
		}
	}
}
