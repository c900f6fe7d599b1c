// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/patch"
)

// TestEqualElementsAreNotMoved edits two list elements that are equal in the document: two members of the first one,
// and one member of the second. The patch must edit both in place and must not move them.
func TestEqualElementsAreNotMoved(t *testing.T) {
	for _, raw := range []string{
		`{"conditions":[{"type":"a","status":"s","message":"m"},{"type":"a","status":"s","message":"m"}]}`,
		`{"conditions":[{"type":"a","status":"s","message":"m"},{ "status":"s", "type":"\u0061","message":"m" }]}`,
	} {
		var status corev1.ComponentStatus
		if err := json.Unmarshal([]byte(raw), &status); err != nil {
			t.Fatal(err)
		}
		for i := range status.Conditions {
			status.Conditions[i].Error = "e"
		}
		status.Conditions[0].Type = "b"
		p, err := patch.Diff([]byte(raw), &status)
		if err != nil {
			t.Fatal(err)
		}
		got := string(p.AppendJSON(nil))
		const move = `"op":"move"`
		if len(p) != 3 || strings.Contains(got, move) {
			t.Errorf("%s: got %s, want two errors and a type, and no move", raw, got)
		}
	}
}
