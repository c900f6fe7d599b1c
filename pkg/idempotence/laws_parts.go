// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/generate"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// checkParts checks L5.
func (r *run) checkParts(c *Case) *Violation {
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
	if problems := r.problems(c.Law, out.after); len(problems) > 0 {
		return r.refused(c, "where part of the result is there already, ", problems, out)
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
	if v := r.pointsAt(c, part, plain, out); v != nil {
		return v
	}
	again := r.f(s, query{object: out.after})
	if again.fault == "" && !again.allowed {
		return r.violation(c, FailureDenied, "where part of the result is there already, it allows the object and then denies what it made of it: "+again.message, out, again)
	}
	return r.unchanged(c, out, again)
}

// missing describes what the webhook normally adds to the object but did not add here. It ignores values that are not
// exactly a part of the result, because the user may want something else.
func (r *run) missing(c *Case, x *objects.Object, plain, out *outcome) *Violation {
	change, found := r.leftOut(c.Law, x, plain, out)
	if !found {
		return nil
	}
	v := r.violation(c, FailureIncomplete, "where part of the result is there already, the webhook leaves out "+change.Path.String(), plain, out)
	if r.mayBeInput(c, plain) || r.inOneStruct(c, change.Path) || edits.IsNote(change.Path) && r.notesWhatItDid(c, x, plain) {
		v.Verdict = Advice
	}
	return v
}

// leftOut returns a part of a result that another result lacks.
func (r *run) leftOut(law Law, x *objects.Object, plain, out *outcome) (tree.Change, bool) {
	for _, change := range edits.Single(tree.Changes(x.Doc, plain.after.Doc)) {
		if change.Kind == tree.Added && !tree.Has(out.after.Doc, change.Path) && !elsewhere(out.after.Doc, change) && !r.intended(law, change) {
			return change, true
		}
	}
	return tree.Change{}, false
}

// mayBeInput reports whether a value that existed before the call differs from the webhook's, so that the user may want
// something else.
func (r *run) mayBeInput(c *Case, plain *outcome) bool {
	return slices.ContainsFunc(c.Edits, func(e Edit) bool {
		at := e.Path
		if e.What == Insert {
			at = at.Element(tree.Identity(at, e.Value), 0)
		}
		own, ok := tree.Get(plain.after.Doc, at)
		return !ok || !tree.Equal(own, e.Value)
	})
}

// inOneStruct reports whether the user has set another field of the struct in which a part is missing. A webhook may fill in
// such a struct as a whole or not at all.
func (r *run) inOneStruct(c *Case, at tree.Path) bool {
	unit := structOf(at)
	if unit == nil || edits.IsNote(at) || r.isMap(unit) {
		return false
	}
	return slices.ContainsFunc(c.Edits, func(e Edit) bool { return e.What == Put && e.Path.HasPrefix(unit) })
}

// structOf returns the path of the struct in a spec or list element that contains a path, such as a container's
// resources.
func structOf(p tree.Path) tree.Path {
	for i := len(p) - 2; i > 0; i-- {
		if above := p[i-1]; !p[i].Element && (above.Element || above.Name == "spec") {
			return p[:i+1]
		}
	}
	return nil
}

// isMap reports whether an object is a map, so that its members can have any name.
func (r *run) isMap(p tree.Path) bool {
	if r.inputs.made.Schema == nil {
		return false
	}
	collection, _ := r.inputs.made.Schema.Keys(p)
	return collection == generate.Map
}

// notesWhatItDid reports whether an annotation is missing only if the user has set fields that the webhook fills in
// otherwise. The annotation may list the fields that were filled in.
func (r *run) notesWhatItDid(c *Case, x *objects.Object, plain *outcome) bool {
	var elements []Edit
	for _, e := range c.Edits {
		if e.What == Insert || edits.IsNote(e.Path) {
			elements = append(elements, e)
		}
	}
	if len(elements) == len(c.Edits) {
		return false
	}
	part, ok := r.edited(x, elements)
	if !ok {
		return false
	}
	out := r.f(r.fresh(), query{object: part})
	if !out.ok() {
		return false
	}
	_, found := r.leftOut(c.Law, x, plain, out)
	return !found
}

// elsewhere reports whether a missing container exists in another list of containers, by its name.
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

// misused describes a volume of the user that the webhook mounts as its own, or returns "".
func (r *run) misused(c *Case, part *objects.Object, plain, out *outcome) *Violation {
	var found *Violation
	tree.Lists(part.Doc, func(p tree.Path, list []any) {
		if p.Last() != "volumes" || found != nil {
			return
		}
		for _, volume := range list {
			path := p.Element(tree.Identity(p, volume), 0)
			own, known := tree.Get(plain.after.Doc, path)
			now, _ := tree.Get(out.after.Doc, path)
			if !known || tree.Equal(own, volume) || !tree.Equal(now, volume) {
				continue // not a name of the webhook's, or what it would make itself
			}
			name, _ := volume.(map[string]any)["name"].(string)
			if mounts(out.after.Doc, name) > mounts(part.Doc, name) {
				found = r.violation(c, FailureMisuses, "a volume of the user's has the name of the webhook's, and the webhook mounts it as if it were its own: "+path.String(), out)
				return
			}
		}
	})
	return found
}

// pointsAt describes a new variable with a path at which the user has mounted another volume than the webhook's, or returns
// "".
func (r *run) pointsAt(c *Case, part *objects.Object, plain, out *outcome) (found *Violation) {
	tree.Lists(part.Doc, func(p tree.Path, list []any) {
		if p.Last() != "volumeMounts" || found != nil {
			return
		}
		for _, mount := range list {
			own, known := tree.Get(plain.after.Doc, p.Element(tree.Identity(p, mount), 0))
			user, _ := mount.(map[string]any)
			if mine, _ := own.(map[string]any); !known || mine["name"] == user["name"] {
				continue
			}
			at, _ := user["mountPath"].(string)
			if name := newVariable(part.Doc, out.after.Doc, p[:len(p)-1].Member("env"), at); name != "" {
				found = r.violation(c, FailureMisuses, fmt.Sprintf("the user has mounted another volume at %s, and the webhook has the variable %s point there", at, name), out)
				found.Verdict = Advice // perhaps the user knows, and has the same in it
				return
			}
		}
	})
	return found
}

// newVariable returns a new variable whose value is a path in a directory.
func newVariable(before, after any, env tree.Path, directory string) string {
	value, _ := tree.Get(after, env)
	list, _ := value.([]any)
	for _, element := range list {
		variable, _ := element.(map[string]any)
		text, _ := variable["value"].(string)
		if len(directory) > 1 && strings.HasPrefix(text, directory) && !tree.Has(before, env.Element(tree.Identity(env, element), 0)) {
			name, _ := variable["name"].(string)
			return name
		}
	}
	return ""
}

// mounts counts a volume's mounts.
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
