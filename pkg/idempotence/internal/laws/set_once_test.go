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
	for name, tc := range map[string]struct{ from, late, want string }{
		"maps of the webhook":             {`{"spec":{"size":1}}`, made, `{"spec":{"size":1}}`},
		"a map of the user":               {`{"metadata":{},"spec":{"size":1}}`, made, `{"metadata":{},"spec":{"size":1}}`},
		"a map that others use meanwhile": {`{"spec":{"size":1}}`, `{"metadata":{"name":"b","labels":{"a":"1"}},"spec":{"size":2}}`, `{"metadata":{"name":"b"},"spec":{"size":1}}`},
	} {
		x, doc := parsed(t, tc.from), parsed(t, tc.late)
		for _, did := range edits.Single(tree.Changes(x, parsed(t, made))) {
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
