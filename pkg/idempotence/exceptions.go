// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"maps"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// intended reports whether an exception covers a change: at its path or below it, or of a parent that is added or removed
// together with it.
func (r *run) intended(law Law, c tree.Change) bool {
	return r.needing(func() bool { return r.covered(law, c) })
}

// needing records the exceptions that answer used, if it returned true. An exception that covers only a part of a change is
// not needed.
func (r *run) needing(answer func() bool) bool {
	if len(r.opts.exceptions) == 0 {
		return false
	}
	before := maps.Clone(r.report.needed)
	if answer() {
		return true
	}
	r.report.needed = before
	return false
}

func (r *run) covered(law Law, c tree.Change) bool {
	switch {
	case r.excepted(law, c.Path):
		return true
	case c.Kind == tree.Added:
		return r.allExcepted(law, c.Path, c.New)
	case c.Kind == tree.Removed:
		return r.allExcepted(law, c.Path, c.Old)
	case c.Kind == tree.Moved:
		return slices.Equal(r.others(law, c.Path, c.Old), r.others(law, c.Path, c.New))
	}
	return false
}

// allExcepted reports whether exceptions cover every part of a value.
func (r *run) allExcepted(law Law, at tree.Path, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if p := at.Member(name); !r.excepted(law, p) && !r.allExcepted(law, p, inner) {
				return false
			}
		}
		return len(value) > 0 || r.leadsTo(law, at)
	case []any:
		for _, element := range value {
			if p := at.Element(tree.Identity(at, element), 0); !r.excepted(law, p) && !r.allExcepted(law, p, element) {
				return false
			}
		}
		return len(value) > 0 || r.leadsTo(law, at)
	}
	return false
}

// leadsTo reports whether an exception's path may lead into the value at a path.
func (r *run) leadsTo(law Law, at tree.Path) bool {
	found := false
	for i, e := range r.opts.exceptions {
		if (e.Law == "" || e.Law == law) && at.LeadsTo(e.Path) {
			r.report.needed[i], found = true, true
		}
	}
	return found
}

// others returns the keys of the list elements without an exception, in order.
func (r *run) others(law Law, at tree.Path, value any) (keys []string) {
	list, _ := value.([]any)
	for _, element := range list {
		if key := tree.Identity(at, element); !r.excepted(law, at.Element(key, 0)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// notNeeded notes the exceptions that covered nothing. It skips those for rivals, which have no path, and those of laws
// without a verdict.
func (r *Report) notNeeded() {
	for i, e := range r.Exceptions {
		if !r.needed[i] && !strings.HasPrefix(e.Path, "rival:") && r.decided(e.Law) {
			r.Notes = append(r.Notes, Reason{Code: ReasonExceptionUnused, Path: e.Path, Law: e.Law})
		}
	}
}

// decided reports whether law has a verdict. With law empty, it reports whether any law has one.
func (r *Report) decided(law Law) bool {
	return slices.ContainsFunc(r.Laws, func(l LawResult) bool {
		return (law == "" || l.Law == law) && l.Verdict != Inconclusive && l.Verdict != NotApplicable
	})
}
