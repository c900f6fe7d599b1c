// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// partsThere checks L5 on objects that already have parts of the result, or similar parts.
type partsThere struct{ *Trial }

func (l partsThere) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	part, ok := l.Edited(x, c.Edits)
	if !ok {
		return nil
	}
	plain := l.first(x)
	if !plain.OK() {
		return nil
	}
	s := l.Fresh()
	out := l.F(s, session.Query{Object: part})
	if v := l.failed(c, out); v != nil || !out.OK() {
		return v
	}
	if problems := l.problems(c.Law, out.After); len(problems) > 0 {
		v := l.refused(c, "if a part of the result exists already, ", problems, out)
		// If a user's part conflicts with the webhook's, the API server rejects it, so the user sees the conflict.
		v.Advice = v.Advice || l.mayBeInput(c, plain)
		return v
	}
	if v := l.lost(c, part, out, "if a part of the result exists already, "); v != nil {
		return v
	}
	if v := l.missing(c, x, plain, out); v != nil {
		return v
	}
	if v := l.misused(c, part, plain, out); v != nil {
		return v
	}
	if v := l.pointsAt(c, part, plain, out); v != nil {
		return v
	}
	again := l.F(s, session.Query{Object: out.After})
	if again.Fault == "" && !again.Allowed {
		return l.Finding(c, Denied, "if a part of the result exists already, the webhook allows the object and then denies its own result: "+again.Message, out, again)
	}
	return l.unchanged(c, out, again)
}

// missing returns a finding if the webhook leaves out a part because the object has another part already. plain is the
// result for x, and out the result for x with the edits of the case. The finding is only advice if the user may want
// something else.
func (l partsThere) missing(c *Case, x *objects.Object, plain, out *session.Outcome) *Finding {
	all := l.leftOut(c.Law, x, plain, out)
	if len(all) == 0 {
		return nil
	}
	change := all[0]
	v := l.Finding(c, Incomplete, "if a part of the result exists already, the webhook leaves out "+change.Path.String(), plain, out)
	if isWordOfCommand(change.Path) || inOneList(c, x, change) || l.mayBeInput(c, plain) || isInjected(c, out) || l.inOneStruct(c, change.Path) ||
		edits.IsNote(change.Path) && l.notesWhatItDid(c, x, plain) || l.areNotesOfOther(c, all) {
		v.Advice = true
	}
	return v
}

// leftOut returns the parts that the webhook adds to x according to plain, but that out lacks.
func (l partsThere) leftOut(law Law, x *objects.Object, plain, out *session.Outcome) (all []tree.Change) {
	patched, err := tree.Decode(plain.Result)
	for _, change := range edits.Single(l.withoutEncoding(tree.Changes(x.Doc, plain.After.Doc))) {
		if change.Kind != tree.Added || tree.HasLike(out.After.Doc, change.Path) || elsewhere(out.After.Doc, change) || l.intended(law, change) {
			continue
		}
		if err == nil && isAlwaysFound(change.Path) && !tree.Has(patched, change.Path) {
			continue // a default of the API server in a part of the webhook
		}
		if !l.isIgnoredStatus(change) && len(l.withoutEncoding([]tree.Change{change})) > 0 {
			all = append(all, change)
		}
	}
	return all
}

// areNotesOfOther reports whether the left out parts are all annotations or labels with the prefix of one other program,
// such as prometheus.io, and an edit has set one of them. The webhook then leaves the rest to the user.
func (l partsThere) areNotesOfOther(c *Case, all []tree.Change) bool {
	prefix := prefixOfNote(all[0].Path)
	if prefix == "" || slices.ContainsFunc(l.Webhooks, func(w *session.Webhook) bool { return domain(w.Name) == domain(prefix) }) {
		return false
	}
	return !slices.ContainsFunc(all, func(left tree.Change) bool { return prefixOfNote(left.Path) != prefix }) &&
		slices.ContainsFunc(c.Edits, func(e edits.Edit) bool { return prefixOfNote(e.Path) == prefix })
}

// prefixOfNote returns the prefix of the annotation or label at a path, or an empty string.
func prefixOfNote(p tree.Path) string {
	prefix, _, hasPrefix := strings.Cut(p[len(p)-1].Name, "/")
	if !hasPrefix || !edits.IsNote(p) {
		return ""
	}
	return prefix
}

// domain returns the last two labels of a domain name.
func domain(name string) string {
	labels := strings.Split(name, ".")
	return strings.Join(labels[max(len(labels)-2, 0):], ".")
}

// inOneList reports whether a missing part is a text of a list that the webhook adds as a whole, and the user has written
// another text of the list. The user then does not want the whole list.
func inOneList(c *Case, x *objects.Object, missing tree.Change) bool {
	list := missing.Path[:len(missing.Path)-1]
	before, _ := tree.Get(x.Doc, list)
	if _, isText := missing.New.(string); !isText || !missing.Path[len(list)].Element || !isVoid(before) {
		return false
	}
	return slices.ContainsFunc(c.Edits, func(e edits.Edit) bool { return e.Path.HasPrefix(list) })
}

// isAlwaysFound reports whether a path leads to a field, and no element on the way is identified by its whole content.
func isAlwaysFound(p tree.Path) bool {
	return !p[len(p)-1].Element && !slices.ContainsFunc(p, func(s tree.Step) bool { return strings.HasPrefix(s.Key, "{") })
}

// isInjected reports whether the webhook does nothing for an object that has one of its containers. The webhook then
// takes the object as one that it has changed already, or that has a container of the user in place of its own.
func isInjected(c *Case, out *session.Outcome) bool {
	return !out.Patched && slices.ContainsFunc(c.Edits, func(e edits.Edit) bool {
		return e.What == edits.Insert && strings.HasSuffix(strings.ToLower(e.Path.Last()), "containers")
	})
}

// isWordOfCommand reports whether a path leads to one word of a command. A missing word is only advice: a webhook that
// wraps a command looks for its wrapper there, not for each word that it would add.
func isWordOfCommand(p tree.Path) bool {
	return len(p) > 1 && p[len(p)-1].Element && p[len(p)-2].Name == "command"
}

// mayBeInput reports whether an edit of the case sets a value that differs from the webhook's. The user may then want
// something else.
func (l partsThere) mayBeInput(c *Case, plain *session.Outcome) bool {
	return slices.ContainsFunc(c.Edits, func(e edits.Edit) bool {
		at := e.Path
		if e.What == edits.Insert {
			at = at.Element(tree.Identity(at, e.Value), 0)
		}
		own, ok := tree.Get(plain.After.Doc, at)
		return !ok || !tree.Equal(own, e.Value)
	})
}

// inOneStruct reports whether the user has set another field of the struct in which a part is missing. A webhook may
// fill in such a struct as a whole or not at all.
func (l partsThere) inOneStruct(c *Case, at tree.Path) bool {
	parent := structOf(at)
	if parent == nil || edits.IsNote(at) || l.Inputs.IsMap(parent) {
		return false
	}
	return slices.ContainsFunc(c.Edits, func(e edits.Edit) bool { return e.What == edits.Put && e.Path.HasPrefix(parent) })
}

// structOf returns the path of the innermost struct in a spec or list element on the way to p, such as the resources of
// a container.
func structOf(p tree.Path) tree.Path {
	for i := len(p) - 2; i > 0; i-- {
		if above := p[i-1]; !p[i].Element && (above.Element || above.Name == "spec") {
			return p[:i+1]
		}
	}
	return nil
}

// notesWhatItDid reports whether the webhook leaves out an annotation only because the user has set fields that the
// webhook would otherwise fill in. Such an annotation may list the fields that the webhook filled in.
func (l partsThere) notesWhatItDid(c *Case, x *objects.Object, plain *session.Outcome) bool {
	var elements []edits.Edit
	for _, e := range c.Edits {
		if e.What == edits.Insert || edits.IsNote(e.Path) {
			elements = append(elements, e)
		}
	}
	if len(elements) == len(c.Edits) {
		return false
	}
	part, ok := l.Edited(x, elements)
	if !ok {
		return false
	}
	out := l.F(l.Fresh(), session.Query{Object: part})
	if !out.OK() {
		return false
	}
	return len(l.leftOut(c.Law, x, plain, out)) == 0
}

// elsewhere reports whether another list of containers has a container with the name of the missing one.
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

// misused returns a finding if the webhook mounts a volume of the user as its own, or nil.
func (l partsThere) misused(c *Case, part *objects.Object, plain, out *session.Outcome) *Finding {
	var found *Finding
	tree.Lists(part.Doc, func(p tree.Path, list []any) {
		if p.Last() != "volumes" || found != nil {
			return
		}
		for _, volume := range list {
			path := p.Element(tree.Identity(p, volume), 0)
			own, known := tree.Get(plain.After.Doc, path)
			now, _ := tree.Get(out.After.Doc, path)
			if !known || tree.Equal(own, volume) || !tree.Equal(now, volume) {
				continue // the webhook has no such volume, would create an equal one, or has replaced it
			}
			name, _ := volume.(map[string]any)["name"].(string)
			if mounts(out.After.Doc, name) > mounts(part.Doc, name) {
				found = l.Finding(c, Misuses, "a volume of the user has the name of the webhook's volume, and the webhook mounts it as its own: "+path.String(), out)
				found.Advice = isEmptyDir(own) // it needs no content, so the user may want another volume in its place
				return
			}
		}
	})
	return found
}

// isEmptyDir reports whether a volume starts empty, whatever its settings are.
func isEmptyDir(volume any) bool { return tree.Has(volume, tree.Path{{Name: "emptyDir"}}) }

// pointsAt returns a finding if the webhook sets a new variable to a path at which the user has mounted another volume,
// or nil.
func (l partsThere) pointsAt(c *Case, part *objects.Object, plain, out *session.Outcome) (found *Finding) {
	tree.Lists(part.Doc, func(p tree.Path, list []any) {
		if p.Last() != "volumeMounts" || found != nil {
			return
		}
		for _, mount := range list {
			own, known := tree.Get(plain.After.Doc, p.Element(tree.Identity(p, mount), 0))
			user, _ := mount.(map[string]any)
			if mine, _ := own.(map[string]any); !known || mine["name"] == user["name"] {
				continue
			}
			at, _ := user["mountPath"].(string)
			if name := newVariable(part.Doc, out.After.Doc, p[:len(p)-1].Member("env"), at); name != "" {
				found = l.Finding(c, Misuses, fmt.Sprintf("the user has mounted another volume at %s, and the webhook sets the variable %s to a path below it", at, name), out)
				found.Advice = true // the user's volume may have the same files on purpose
				return
			}
		}
	})
	return found
}

// newVariable returns the name of a new variable whose value is a path in the directory, or "".
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
