// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// completesParts is L5.
func (r *run) completesParts(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	part, ok := r.edited(x, c.Edits)
	if !ok {
		return nil
	}
	plain := r.first(x)
	if !plain.ok() {
		return nil
	}
	s := r.fresh()
	out := r.f(s, query{object: part})
	if v := r.failed(c, out); v != nil || !out.ok() {
		return v
	}
	if problems := r.kind.problems(out.after); len(problems) > 0 {
		return r.violation(c, "invalid", "where part of the result is there already, the API server refuses what the webhook makes of the object: "+strings.Join(problems, "; "), out)
	}
	if v := r.lost(c, part, out, "where part of the result is there already, "); v != nil {
		return v
	}
	if v := r.missing(c, x, plain, out); v != nil {
		return v
	}
	if v := r.misused(c, part, plain, out); v != nil {
		return v
	}
	again := r.f(s, query{object: out.after})
	if again.fault == "" && !again.allowed {
		return r.violation(c, "denied", "where part of the result is there already, it allows the object and then denies what it made of it: "+again.message, out, again)
	}
	return r.unchanged(c, out, again)
}

// lost tells what of the object a call has removed. What is in a sample may be there for the
// webhook to remove, so about that there is only advice.
func (r *run) lost(c *Case, before *object, out *outcome, when string) *Violation {
	var gone []tree.Change
	for _, change := range r.differences(c.Law, before, out.after) {
		if change.Kind == tree.Removed && overwritten(out.after.doc, change.Path) {
			continue
		}
		if change.Kind == tree.Removed || change.Kind == tree.Replaced && tree.Size(change.Old) > 1 && tree.Size(change.New) <= 1 {
			gone = append(gone, change)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	names := map[string]bool{} // of the sample's elements that go
	for _, change := range gone {
		if r.inputs.given(change.Path) {
			namesOf(change.Old, names)
		}
	}
	foreign := slices.DeleteFunc(slices.Clone(gone), func(c tree.Change) bool {
		return r.inputs.given(c.Path) || c.Path.Last() == "volumeMounts" && allNamed(c.Old, names)
	})
	if len(foreign) == 0 {
		v := r.violation(c, "removes of the sample", when+"the webhook removes what is in a sample: "+summary(gone), out)
		v.Verdict = Advice
		return v
	}
	return r.violation(c, "removes", when+"the webhook removes what it did not put there: "+summary(foreign), out)
}

// overwritten reports whether a variable has a value instead of a reference: it is set, as another value
// would be.
func overwritten(after any, p tree.Path) bool {
	return len(p) > 1 && !p[len(p)-1].Element && p.Last() == "valueFrom" && tree.Has(after, p[:len(p)-1].Member("value"))
}

// namesOf collects the names of elements.
func namesOf(value any, names map[string]bool) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			namesOf(element, names)
		}
	case map[string]any:
		if name, ok := value["name"].(string); ok {
			names[name] = true
		}
	}
}

// allNamed reports whether all elements have one of the names.
func allNamed(value any, names map[string]bool) bool {
	found := map[string]bool{}
	namesOf(value, found)
	for name := range found {
		if !names[name] {
			return false
		}
	}
	return len(found) > 0
}

// missing tells what the webhook adds to the object as a rule, but not here.
func (r *run) missing(c *Case, x *object, plain, out *outcome) *Violation {
	for _, change := range single(r.differences(c.Law, x, plain.after)) {
		if change.Kind == tree.Added && !tree.Has(out.after.doc, change.Path) && !elsewhere(out.after.doc, change) {
			return r.violation(c, "incomplete", "where part of the result is there already, the webhook leaves out "+change.Path.String(), plain, out)
		}
	}
	return nil
}

// elsewhere reports whether a container that is missing is one of another sort: the name is what
// identifies it.
func elsewhere(doc any, change tree.Change) bool {
	if len(change.Path) < 2 || !strings.HasSuffix(strings.ToLower(change.Path.Last()), "containers") {
		return false
	}
	above := change.Path[:len(change.Path)-2]
	for _, list := range []string{"containers", "initContainers"} {
		if tree.Has(doc, append(above.Member(list), change.Path[len(change.Path)-1])) {
			return true
		}
	}
	return false
}

// misused tells of a volume of the user's that the webhook mounts as if it were its own.
func (r *run) misused(c *Case, part *object, plain, out *outcome) *Violation {
	var found *Violation
	tree.Lists(part.doc, func(p tree.Path, list []any) {
		if p.Last() != "volumes" || found != nil {
			return
		}
		for _, volume := range list {
			path := p.Element(tree.Identity(p, volume), 0)
			own, known := tree.Get(plain.after.doc, path)
			now, _ := tree.Get(out.after.doc, path)
			if !known || tree.Equal(own, volume) || !tree.Equal(now, volume) {
				continue // not a name of the webhook's, or what it would make itself
			}
			name, _ := volume.(map[string]any)["name"].(string)
			if mounts(out.after.doc, name) > mounts(part.doc, name) {
				found = r.violation(c, "misuses", "a volume of the user's has the name of the webhook's, and the webhook mounts it as if it were its own: "+path.String(), out)
				return
			}
		}
	})
	return found
}

// mounts counts the mounts of a volume.
func mounts(doc any, volume string) (n int) {
	tree.Lists(doc, func(p tree.Path, list []any) {
		if p.Last() != "volumeMounts" {
			return
		}
		for _, mount := range list {
			if m, ok := mount.(map[string]any); ok && m["name"] == volume {
				n++
			}
		}
	})
	return n
}
