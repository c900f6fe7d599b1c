// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// TestTakeBack reverts all changes to a document, in which other parties may have set other values since.
func TestTakeBack(t *testing.T) {
	const made = `{"metadata":{"labels":{"a":"1"}},"spec":{"size":2}}`
	const listed = `{"spec":{"size":1,"bastion":{"blocks":["a","b"]}}}`
	for name, tc := range map[string]struct{ from, made, late, want string }{
		"maps of the webhook":             {`{"spec":{"size":1}}`, made, made, `{"spec":{"size":1}}`},
		"a map of the user":               {`{"metadata":{},"spec":{"size":1}}`, made, made, `{"metadata":{},"spec":{"size":1}}`},
		"a map that others use meanwhile": {`{"spec":{"size":1}}`, made, `{"metadata":{"name":"b","labels":{"a":"1"}},"spec":{"size":2}}`, `{"metadata":{"name":"b"},"spec":{"size":1}}`},
		"an addition to a list":           {`{"spec":{"size":1}}`, listed, `{"spec":{"size":1,"bastion":{"blocks":["a","b","c"]}}}`, `{"spec":{"size":1,"bastion":{"blocks":["c"]}}}`},
	} {
		x, doc := parsed(t, tc.from), parsed(t, tc.late)
		for _, did := range edits.Single(edits.Single(tree.Changes(x, parsed(t, tc.made)))) {
			next, ok := takeBack(x, doc, did)
			if !ok {
				t.Fatalf("%s: %s cannot be taken back", name, did.Path)
			}
			doc = next
		}
		if !tree.Equal(doc, parsed(t, tc.want)) {
			t.Errorf("%s: %s, want %s", name, tree.Encode(doc), tc.want)
		}
	}
}
