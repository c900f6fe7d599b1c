// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"
	"testing"
)

// TestRememberedValuesDoNotChangeTheResult decodes pairs of reviews in both orders and checks that the first does not
// change how the second is read.
func TestRememberedValuesDoNotChangeTheResult(t *testing.T) {
	pod := `{"group":"","version":"v1","kind":"Pod"}`
	bodies := []string{
		v1(`{"uid":"u","kind":` + pod + `,"requestKind":` + pod + `}`),
		v1(`{"uid":"u","kind":{"group":"apps","version":"v1","kind":"Deployment"},"kind":{"version":"v1"}}`),
		v1(`{"uid":"u","kind":{"version":"v1"},"kind":{"version":"v1"}}`),
		v1(`{"uid":"u","kind":{"group":"apps"},"kind":` + pod + `,"requestKind":{"kind":"A"},"requestKind":null}`),
		v1(`{"uid":"u","kind": {"version":"v1"} ,"requestKind":{"kind":"A"},"requestKind":{"version":"v1"}}`),
		v1(`{"uid":"u","kind":{"version":"v1","kind":1}}`),
		v1(`{"uid":"u","kind":{"version":"v1","kind":1}}`),
		v1(`{"uid":"u","kind":{},"requestKind":{}}`),
		v1(`{"uid":"u","kind":{"version":"` + strings.Repeat("v", 1024) + `"},"requestKind":{"version":"v1"}}`),
		v1(`{"uid":"u","resource":{"version":"v1","resource":"pods"},"requestResource":{"version":"v1","resource":"pods"}}`),
		v1(`{"uid":"u","resource":{"resource":"nodes"},"resource":{"version":"v1","resource":"pods"}}`),
		v1(`{"uid":"u","resource":{"version":"v1","resource":"pods"`),
		v1(`{"uid":"u","kind":{"version":"v1"`),
	}
	for i, first := range bodies {
		for _, second := range bodies {
			agree(t, []byte(first))
			agree(t, []byte(second))
			if t.Failed() {
				t.Fatalf("review %d, then %s", i, second)
			}
		}
	}
}
