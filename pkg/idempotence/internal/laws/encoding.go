// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Webhooks for custom resources mostly decode an object into a Go type, change it, and encode it again if anything
// changed. The encoder writes zero values for absent fields, and quantities in their usual form. Two results may differ
// in these, but for clients they mean the same.

// withoutEncoding returns the changes between two results without those that only show whether the webhook has encoded
// the object. For built-in kinds it returns all changes, because the API server itself encodes these objects.
func (t *Trial) withoutEncoding(changes []tree.Change) []tree.Change {
	if t.Session == nil || t.Kind.GoType != nil || len(changes) == 0 {
		return changes
	}
	changes = slices.DeleteFunc(slices.Clone(changes), t.isEncoding)
	return pairsDropped(changes, func(gone tree.Change, come any) bool {
		inner := tree.Changes(gone.Old, come)
		return !slices.ContainsFunc(inner, func(c tree.Change) bool {
			c.Path = slices.Concat(gone.Path, c.Path)
			return !t.isEncoding(c)
		})
	})
}

// isEncoding reports whether a change only shows that one of the two objects was encoded.
func (t *Trial) isEncoding(c tree.Change) bool {
	if len(c.Path) == 0 || c.Path[len(c.Path)-1].Element {
		return false
	}
	switch c.Kind {
	case tree.Added:
		return t.writesZero(c.Path, c.New)
	case tree.Removed:
		return t.writesZero(c.Path, c.Old)
	case tree.Replaced:
		return sameQuantity(c.Old, c.New)
	}
	return false
}

// writesZero reports whether an encoder may have written a value: it is a zero value outside of containers and metadata,
// whose types leave out most of them. The divisor of a resource reference is always written.
func (t *Trial) writesZero(p tree.Path, value any) bool {
	if p.Last() == "divisor" && value == any("0") {
		return true
	}
	return edits.IsZero(value) && t.Behaviour.WritesZeros() && !slices.ContainsFunc(p, func(s tree.Step) bool {
		return s.Name == "metadata" || strings.HasSuffix(strings.ToLower(s.Name), "containers")
	})
}

// isZeroOfUser reports whether a change removes a zero value from a field of a custom resource. An encoder leaves it out,
// and readers treat it like an absent one.
func (t *Trial) isZeroOfUser(c tree.Change) bool {
	if t.Session == nil || t.Kind.GoType != nil || c.Kind != tree.Removed || len(c.Path) < 2 || c.Path[len(c.Path)-1].Element || !edits.IsZero(c.Old) {
		return false
	}
	return !edits.IsNote(c.Path) && !t.Inputs.IsMap(c.Path[:len(c.Path)-1])
}

// isIgnoredStatus reports whether a change is in the status of a custom resource that has the status subresource. The
// API server drops such changes.
func (t *Trial) isIgnoredStatus(c tree.Change) bool {
	return len(c.Path) > 0 && c.Path[0].Name == "status" && t.Session != nil && t.Kind.DropsStatus()
}
