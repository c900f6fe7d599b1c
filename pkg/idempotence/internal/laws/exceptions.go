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

// Needed reports whether the i-th exception covered something.
func (k *Checker) Needed(i int) bool { return k.needed[i] }

// differences returns the changes from a to b without those that exceptions cover.
func (k *Checker) differences(law Law, a, b *objects.Object) []tree.Change {
	if string(a.Raw) == string(b.Raw) {
		return nil
	}
	return slices.DeleteFunc(tree.Changes(a.Doc, b.Doc), func(c tree.Change) bool { return k.intended(law, c) })
}

// Changed returns the changes from a to b without those that exceptions for all laws cover.
func (k *Checker) Changed(a, b *objects.Object) []tree.Change { return k.differences("", a, b) }

// content returns the differences that are not only another order of elements.
func (k *Checker) content(law Law, a, b *objects.Object) []tree.Change {
	return slices.DeleteFunc(k.differences(law, a, b), func(c tree.Change) bool { return c.Kind == tree.Moved })
}

// excepted reports whether an exception covers a path.
func (k *Checker) excepted(law Law, path tree.Path) bool {
	found := false
	for i, e := range k.Exceptions {
		if (e.Law == "" || e.Law == law) && path.Matches(e.Path) {
			k.needed[i], found = true, true
		}
	}
	return found
}

// intended reports whether an exception covers a change: at its path or below it, or of a parent that is added or removed
// together with it.
func (k *Checker) intended(law Law, c tree.Change) bool {
	return k.needing(func() bool { return k.covered(law, c) })
}

// needing records the exceptions that answer used, if it returned true. An exception that covers only a part of a change is
// not needed.
func (k *Checker) needing(answer func() bool) bool {
	if len(k.Exceptions) == 0 {
		return false
	}
	before := maps.Clone(k.needed)
	if answer() {
		return true
	}
	k.needed = before
	return false
}

func (k *Checker) covered(law Law, c tree.Change) bool {
	switch {
	case k.excepted(law, c.Path):
		return true
	case c.Kind == tree.Added:
		return k.allExcepted(law, c.Path, c.New)
	case c.Kind == tree.Removed:
		return k.allExcepted(law, c.Path, c.Old)
	case c.Kind == tree.Moved:
		return slices.Equal(k.others(law, c.Path, c.Old), k.others(law, c.Path, c.New))
	}
	return false
}

// allExcepted reports whether exceptions cover every part of a value.
func (k *Checker) allExcepted(law Law, at tree.Path, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if p := at.Member(name); !k.excepted(law, p) && !k.allExcepted(law, p, inner) {
				return false
			}
		}
		return len(value) > 0 || k.leadsTo(law, at)
	case []any:
		for _, element := range value {
			if p := at.Element(tree.Identity(at, element), 0); !k.excepted(law, p) && !k.allExcepted(law, p, element) {
				return false
			}
		}
		return len(value) > 0 || k.leadsTo(law, at)
	}
	return false
}

// leadsTo reports whether an exception's path may lead into the value at a path.
func (k *Checker) leadsTo(law Law, at tree.Path) bool {
	found := false
	for i, e := range k.Exceptions {
		if (e.Law == "" || e.Law == law) && at.LeadsTo(e.Path) {
			k.needed[i], found = true, true
		}
	}
	return found
}

// others returns the keys of the list elements without an exception, in order.
func (k *Checker) others(law Law, at tree.Path, value any) (keys []string) {
	list, _ := value.([]any)
	for _, element := range list {
		if key := tree.Identity(at, element); !k.excepted(law, at.Element(key, 0)) {
			keys = append(keys, key)
		}
	}
	return keys
}
