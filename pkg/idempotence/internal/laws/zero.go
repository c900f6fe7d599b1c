// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// explicitZero checks L5 on objects in which the user has set a field to its zero value: 0, or an empty string. A webhook
// that replaces it but keeps other values treats the zero value as an absent one, as Go types without pointers do.
type explicitZero struct{ *Trial }

func (l explicitZero) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok || len(c.Edits) != 1 || l.excepted(c.Law, c.Edits[0].Path) {
		return nil
	}
	plain := l.first(x)
	if !plain.OK() {
		return nil
	}
	at, none := c.Edits[0].Path, c.Edits[0].Value
	own, _ := tree.Get(plain.After.Doc, at)
	least, other, ok := edits.OtherValues(own)
	if !ok || tree.Has(x.Doc, at) {
		return nil
	}
	out, result := l.resultWith(x, at, none)
	if out == nil || edits.IsZero(result) || !l.keeps(x, at, other) {
		return nil
	}
	if least != nil && !l.keeps(x, at, least) {
		return nil // the webhook requires a minimum
	}
	v := l.Finding(c, OverwritesZero, fmt.Sprintf("the user has set %s to %s, but the webhook replaces it and keeps other values, so it treats %[2]s as absent", at, tree.Encode(none)), out)
	v.Advice = l.Kind.GoType == nil || !l.differsFromNone(at, none, least)
	return v
}

// differsFromNone reports whether a zero value surely has another meaning than an absent value. A 0 has if the webhook keeps
// a 1, except in some fields. An empty string has only in storageClassName, where it means no storage class.
func (l explicitZero) differsFromNone(at tree.Path, none, least any) bool {
	if none == "" {
		return at.Last() == "storageClassName"
	}
	return least != nil && !l.isAvoidedZero(at)
}

// isAvoidedZero reports whether webhooks may have a reason to replace a 0 in a field: it is root, the Priority plugin of the
// API server has set it, or it keeps all nodes from being drained.
func (l explicitZero) isAvoidedZero(p tree.Path) bool {
	return slices.Contains([]string{"runAsUser", "runAsGroup", "fsGroup", "priority"}, p.Last()) ||
		l.Kind.Kind == "PodDisruptionBudget" && p.Last() == "maxUnavailable"
}

// resultWith returns the result for an object in which the user has set a value, and the value in the result. It returns no
// result if the API server changes the value, or if the object is not allowed.
func (l explicitZero) resultWith(x *objects.Object, at tree.Path, value any) (*session.Outcome, any) {
	edited, ok := l.Edited(x, []edits.Edit{{What: edits.Put, Path: at, Value: value}})
	if !ok {
		return nil, nil
	}
	if was, _ := tree.Get(edited.Doc, at); !tree.Equal(was, value) {
		return nil, nil
	}
	out := l.F(l.Fresh(), session.Query{Object: edited})
	if !out.OK() {
		return nil, nil
	}
	is, _ := tree.Get(out.After.Doc, at)
	return out, is
}

func (l explicitZero) keeps(x *objects.Object, at tree.Path, value any) bool {
	out, result := l.resultWith(x, at, value)
	return out != nil && tree.Equal(result, value)
}
