// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// zeroThere checks L5 on objects in which the user has set a number to 0. A webhook that replaces the 0 but keeps other
// numbers takes 0 for no value, as Go types without pointers do.
type zeroThere struct{ *Trial }

func (l zeroThere) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok || len(c.Edits) != 1 || l.excepted(c.Law, c.Edits[0].Path) {
		return nil
	}
	plain := l.first(x)
	if !plain.OK() {
		return nil
	}
	at := c.Edits[0].Path
	own, _ := tree.Get(plain.After.Doc, at)
	other, ok := edits.OtherNumber(own)
	if !ok || tree.Has(x.Doc, at) {
		return nil
	}
	with := func(value any) (*session.Outcome, any) {
		given, ok := l.Edited(x, []edits.Edit{{What: edits.Put, Path: at, Value: value}})
		if !ok {
			return nil, nil
		}
		if was, _ := tree.Get(given.Doc, at); !tree.Equal(was, value) {
			return nil, nil // the API server has a default for it
		}
		out := l.F(l.Fresh(), session.Query{Object: given})
		if !out.OK() {
			return nil, nil
		}
		is, _ := tree.Get(out.After.Doc, at)
		return out, is
	}
	zero, result := with(int64(0))
	if zero == nil || edits.IsZero(result) {
		return nil
	}
	kept, result := with(other)
	if kept == nil || !tree.Equal(result, other) {
		return nil
	}
	v := l.Finding(c, Overwrites, fmt.Sprintf("the webhook replaces a 0 that the user has set in %s, but keeps other values: it takes 0 for no value", at), zero)
	v.Advice = l.Kind.GoType == nil // the API of a custom resource may define 0 as no value
	return v
}
