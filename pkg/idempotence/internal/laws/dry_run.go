// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// dryRun checks L7: a dry run gives the same result and has no side effect.
type dryRun struct{ *Trial }

func (l dryRun) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok || !l.TakesDryRuns() {
		return nil
	}
	never := l.F(l.Fresh(), session.Query{Object: x})
	s := l.Fresh()
	before := l.observe()
	dry := l.F(s, session.Query{Object: x, DryRun: true})
	if after := l.observe(); !bytes.Equal(before, after) {
		return l.Finding(c, SideEffect, fmt.Sprintf("a dry run has a side effect: %s → %s", before, after), dry)
	}
	if v := l.sameAs(c, never, dry, "a dry run"); v != nil {
		return v
	}
	if v := l.sameAs(c, never, l.F(s, session.Query{Object: x}), "the call after a dry run"); v != nil {
		return v
	}
	return l.takesNumber(c, x)
}

// takesNumber returns a finding if the webhook writes the numbers of a sequence, and a dry run takes one of them. Only a
// webhook that generates values can do that.
func (l dryRun) takesNumber(c *Case, x *objects.Object) *Finding {
	if !slices.ContainsFunc(l.Exceptions, func(e Exception) bool { return e.Law == L3 }) {
		return nil
	}
	s := l.Fresh()
	var outs []*session.Outcome
	for _, dry := range []bool{false, false, true, false} {
		out := l.F(s, session.Query{Object: x, DryRun: dry})
		if !out.OK() {
			return nil
		}
		outs = append(outs, out)
	}
	for _, d := range tree.Changes(outs[0].After.Doc, outs[1].After.Doc) {
		if !l.drawn(d.Path) {
			continue
		}
		first, isNumber := numberAt(outs[0].After.Doc, d.Path)
		for i, out := range outs {
			n, also := numberAt(out.After.Doc, d.Path)
			isNumber = isNumber && also && n == first+int64(i)
		}
		if isNumber {
			return l.Finding(c, SideEffect, fmt.Sprintf("a dry run has a side effect: it takes a number of the sequence in %s: %d → %d", d.Path, first+1, first+3), outs[1:]...)
		}
	}
	return nil
}

// numberAt returns the integer at a path, which can be a text.
func numberAt(doc any, p tree.Path) (int64, bool) {
	value, ok := tree.Get(doc, p)
	n, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
	return n, ok && err == nil
}

// observe returns the state that the webhook writes outside of the object, from Options.Observe.
func (l dryRun) observe() []byte {
	if l.Observe == nil {
		return nil
	}
	text, err := json.Marshal(l.Observe())
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
