// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// SetAside reports whether a finding about L3 is only about random values that the webhook sets in a new object and
// keeps in later calls. If so, it adds exceptions for them, so that the other laws can be checked, and mentions this in
// the summary of the finding.
func (r *Run) SetAside(f *laws.Finding) bool {
	if f.Mode != laws.Varies {
		return false
	}
	changes, ok := r.Differences(f)
	x, valid := r.Valid(f.Case.Object)
	if !ok || !valid || len(changes) == 0 || !r.keeps(x, changes) {
		return false
	}
	paths := laws.Patterns(changes)
	for _, path := range paths {
		r.Exceptions = append(r.Exceptions, laws.Exception{Path: path, Law: laws.L3})
	}
	f.Summary += ". Later calls keep the value, so the other laws are checked without " + strings.Join(paths, ", ")
	return true
}

// keeps reports whether further calls, on any instance, do not change the random values that the first call has set.
func (r *Run) keeps(x *objects.Object, drawn []tree.Change) bool {
	if slices.ContainsFunc(drawn, func(c tree.Change) bool { return c.Kind == tree.Moved }) {
		return false
	}
	out := r.F(r.NewInstances(), session.Query{Object: x})
	for range 3 {
		if !out.OK() {
			return false
		}
		again := r.F(r.NewInstances(), session.Query{Object: out.After})
		if !again.OK() || !tree.Equal(again.After.Doc, out.After.Doc) {
			return false
		}
		out = again
	}
	return true
}
