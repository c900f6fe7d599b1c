// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"maps"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// enforces reports whether the webhook removes values only from structs that it sets as a whole in every call, such as
// an identity or a security context. To set them, whatever the user wrote, is then its purpose. gone lists the removed
// values.
func (t *Trial) enforces(before *objects.Object, out *session.Outcome, gone []tree.Change) bool {
	known := map[string]bool{}
	return !slices.ContainsFunc(gone, func(c tree.Change) bool {
		at, ok := t.ownStruct(c.Path)
		if !ok {
			return true
		}
		is, asked := known[at.String()]
		if !asked {
			is = t.setsAlways(before, out, at)
			known[at.String()] = is
		}
		return !is
	})
}

// ownStruct returns the path of the struct that has the field at p. It returns false if a webhook has no reason to set
// such a struct as a whole, as for labels and other maps.
func (t *Trial) ownStruct(p tree.Path) (tree.Path, bool) {
	if len(p) < 3 || p[len(p)-1].Element || p[len(p)-2].Element || edits.IsNote(p) {
		return nil, false
	}
	at := p[:len(p)-1]
	name := strings.ToLower(at.Last())
	if t.Kind.GoType != nil {
		return at, name == "securitycontext"
	}
	for _, end := range []string{"labels", "annotations", "selector", "data", "limits", "requests", "resources", "parameters", "options", "spec", "metadata"} {
		if strings.HasSuffix(name, end) {
			return nil, false
		}
	}
	return at, !t.Inputs.IsMap(at)
}

// setsAlways reports whether the webhook always sets the struct at a path to the same value: also if the user has not
// set it, and if the user's struct has that value and further fields.
func (t *Trial) setsAlways(before *objects.Object, out *session.Outcome, at tree.Path) bool {
	own, _ := tree.Get(out.After.Doc, at)
	set, _ := own.(map[string]any)
	value, _ := tree.Get(before.Doc, at)
	user, _ := value.(map[string]any)
	if len(set) == 0 || len(user) == 0 {
		return false
	}
	both := maps.Clone(user)
	maps.Copy(both, set)
	without, removed := tree.Remove(before.Doc, at)
	with, put := tree.Put(before.Doc, at, both)
	if !removed || !put {
		return false
	}
	for _, doc := range []any{without, with} {
		x, ok := t.Valid(doc)
		if !ok {
			return false
		}
		again := t.F(t.Fresh(), session.Query{Object: x})
		if !again.OK() {
			return false
		}
		if now, has := tree.Get(again.After.Doc, at); !has || !tree.Equal(now, own) {
			return false
		}
	}
	return true
}

// extends reports whether the added element now has all values of the removed element old. Neither has a key. If old is
// empty, now must be empty, too, because {} in a list can mean everything.
func extends(old, now any) bool {
	from, isObject := old.(map[string]any)
	return isObject && (len(from) > 0 && hasAll(now, from) || len(from) == 0 && hasAll(from, now))
}

// hasAll reports whether now has every value of old. An empty value of old may have been set, such as a name that has a
// default. Lists may have other elements, too, in any order.
func hasAll(now, old any) bool {
	if isVoid(old) || old == any("") {
		return true
	}
	switch from := old.(type) {
	case map[string]any:
		to, ok := now.(map[string]any)
		for name, value := range from {
			ok = ok && hasAll(to[name], value)
		}
		return ok
	case []any:
		to, _ := now.([]any)
		to = slices.Clone(to)
		for _, element := range from {
			i := slices.IndexFunc(to, func(other any) bool { return hasAll(other, element) })
			if i < 0 {
				return false
			}
			to = slices.Delete(to, i, i+1)
		}
		return true
	}
	return tree.Equal(now, old)
}
