// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"maps"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// An Exception is a field path at which a law may fail. An empty Law means all laws.
type Exception struct {
	Path string
	Law  Law
}

// comparesRuns has the laws that compare the results of two first calls. If the webhook sets a random value, these
// results differ, although only L3 is about random values.
var comparesRuns = map[Law]bool{L4b: true, L5: true, L7: true, L8: true, L11: true}

// covers reports whether an exception applies to a law. An exception for L3 also applies to the laws in comparesRuns.
func (e Exception) covers(law Law) bool {
	return e.Law == "" || e.Law == law || e.Law == L3 && comparesRuns[law]
}

// Needed reports whether the i-th exception covered a change.
func (t *Trial) Needed(i int) bool { return t.needed[i] }

// differences returns the changes from a to b without those that exceptions cover.
func (t *Trial) differences(law Law, a, b *objects.Object) []tree.Change {
	if string(a.Raw) == string(b.Raw) {
		return nil
	}
	changes := slices.DeleteFunc(tree.Changes(a.Doc, b.Doc), func(c tree.Change) bool {
		return t.intended(law, c) || isSpelling(c) || t.isIgnoredStatus(c) || comparesRuns[law] && isTokenMount(c)
	})
	return t.dropPairs(law, changes)
}

// Changed returns the changes from a to b, except those that are covered by exceptions for all laws.
func (t *Trial) Changed(a, b *objects.Object) []tree.Change { return t.differences("", a, b) }

// content returns the differences without lists that differ only in order.
func (t *Trial) content(law Law, a, b *objects.Object) []tree.Change {
	return slices.DeleteFunc(t.differences(law, a, b), func(c tree.Change) bool { return c.Kind == tree.Moved })
}

// excepted reports whether an exception covers a path. It records that such an exception was needed.
func (t *Trial) excepted(law Law, path tree.Path) bool {
	found := false
	for i, e := range t.Exceptions {
		if e.covers(law) && path.Matches(e.Path) {
			t.needed[i], found = true, true
		}
	}
	return found
}

// intended reports whether exceptions cover a change. They may name the path of the change or a parent of it, or each
// part of the added or removed value.
func (t *Trial) intended(law Law, c tree.Change) bool {
	return t.needing(func() bool { return t.covered(law, c) })
}

// needing returns the result of covers. If that is false, needing discards what covers recorded in t.needed, because an
// exception that covers only a part of a change is not needed.
func (t *Trial) needing(covers func() bool) bool {
	if len(t.Exceptions) == 0 {
		return false
	}
	before := maps.Clone(t.needed)
	if covers() {
		return true
	}
	t.needed = before
	return false
}

func (t *Trial) covered(law Law, c tree.Change) bool {
	switch {
	case t.excepted(law, c.Path):
		return true
	case c.Kind == tree.Added:
		return t.allExcepted(law, c.Path, c.New)
	case c.Kind == tree.Removed:
		return t.allExcepted(law, c.Path, c.Old)
	case c.Kind == tree.Moved:
		return slices.Equal(t.others(law, c.Path, c.Old), t.others(law, c.Path, c.New))
	}
	return false
}

// allExcepted reports whether exceptions cover every part of a value.
func (t *Trial) allExcepted(law Law, at tree.Path, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if p := at.Member(name); !t.excepted(law, p) && !t.allExcepted(law, p, inner) {
				return false
			}
		}
		return len(value) > 0 || t.leadsTo(law, at)
	case []any:
		for _, element := range value {
			if p := at.Element(tree.Identity(at, element), 0); !t.excepted(law, p) && !t.allExcepted(law, p, element) {
				return false
			}
		}
		return len(value) > 0 || t.leadsTo(law, at)
	}
	return false
}

// leadsTo reports whether an exception's path may lead into the value at a path. It records that such an exception was
// needed.
func (t *Trial) leadsTo(law Law, at tree.Path) bool {
	found := false
	for i, e := range t.Exceptions {
		if e.covers(law) && at.LeadsTo(e.Path) {
			t.needed[i], found = true, true
		}
	}
	return found
}

// others returns the keys of the list elements that no exception covers, in order.
func (t *Trial) others(law Law, at tree.Path, value any) (keys []string) {
	list, _ := value.([]any)
	for _, element := range list {
		if key := tree.Identity(at, element); !t.excepted(law, at.Element(key, 0)) {
			keys = append(keys, key)
		}
	}
	return keys
}
