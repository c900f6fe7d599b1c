// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// TestIsTouched checks that reports leave out the annotation of the harness, but no other annotations.
func TestIsTouched(t *testing.T) {
	key := edits.TouchedAnnotation[len(edits.TouchedAnnotation)-1].Name
	for _, c := range []struct {
		change tree.Change
		want   bool
	}{
		{tree.Change{Path: edits.TouchedAnnotation, Old: "yes"}, true},
		{tree.Change{Path: edits.Metadata.Member("annotations"), Old: map[string]any{key: "yes"}}, true},
		{tree.Change{Path: edits.Metadata.Member("annotations"), Old: map[string]any{key: "yes", "a": "b"}}, false},
		{tree.Change{Path: edits.Metadata.Member("labels"), Old: map[string]any{key: "yes"}}, false},
	} {
		if got := isTouched(c.change); got != c.want {
			t.Errorf("%s %v: %t", c.change.Path, c.change.Old, got)
		}
	}
}
