// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// lost returns a finding about values that a call has removed. It is only advice if the values come from a sample or
// belong to the webhook's own element: the webhook may be meant to remove them.
func (t *Trial) lost(c *Case, before *objects.Object, out *session.Outcome, when string) *Finding {
	gone := slices.DeleteFunc(losses(t.differences(c.Law, before, out.After), before.Doc, out.After.Doc, t.Inputs.Same), func(gone tree.Change) bool {
		return t.intended(c.Law, gone) || t.isZeroOfUser(gone) || t.isNameless(gone)
	})
	if len(gone) == 0 || onlyAdds(out) {
		return nil
	}
	names := map[string]bool{} // names of the removed elements of samples
	for _, change := range gone {
		if t.Inputs.Given(change.Path) {
			namesOf(change.Old, names)
		}
	}
	foreign := slices.DeleteFunc(slices.Clone(gone), func(c tree.Change) bool {
		return t.Inputs.Given(c.Path) || c.Path.Last() == "volumeMounts" && allNamed(c.Old, names)
	})
	if len(foreign) == 0 {
		v := t.Finding(c, RemovesSample, when+"the webhook removes values of a sample: "+summary(gone), out)
		v.Advice = true
		return v
	}
	if others := slices.DeleteFunc(slices.Clone(foreign), func(c tree.Change) bool { return t.isOwn(before, c.Path) }); len(others) > 0 && !t.enforces(before, out, others) {
		return t.Finding(c, Removes, when+"the webhook removes values that it did not set: "+summary(others), out)
	}
	v := t.Finding(c, Overwrites, when+"the webhook overwrites values that others may set: "+summary(foreign), out)
	v.Advice = true
	return v
}

// isNameless reports whether a change removes an element of a custom resource that lacks the name that elements of this
// list have in the samples. No reader can use such an element.
func (t *Trial) isNameless(c tree.Change) bool {
	if t.Session == nil || t.Kind.GoType != nil || !isElement(c, tree.Removed) {
		return false
	}
	fields, isObject := c.Old.(map[string]any)
	return isObject && (fields["name"] == nil || fields["name"] == "") && t.Inputs.GivenIn(c.Path.Member("name"))
}

// losses returns the changes that remove values. A changed element is not a loss, but its removed members are. same
// reports whether two elements have equal keys.
func losses(changes []tree.Change, before, after any, same func(list tree.Path, a, b any) bool) (gone []tree.Change) {
	instead := map[int]string{} // by index of an added element that replaces removed ones: the unused rest of its text
	for _, c := range changes {
		now, ok := stillThere(changes, c, same)
		if !ok {
			now, ok = inSibling(after, c)
		}
		if !ok {
			now, ok = inPlace(before, after, c)
		}
		if ok {
			for _, inner := range losses(tree.Changes(c.Old, now), c.Old, now, func(tree.Path, any, any) bool { return false }) {
				inner.Path = slices.Concat(c.Path, inner.Path)
				gone = append(gone, inner)
			}
			continue
		}
		switch {
		case c.Kind == tree.Replaced && tree.Size(c.Old) > 1 && tree.Size(c.New) <= 1:
		case c.Kind != tree.Removed, overwritten(after, c.Path), replaced(changes, c, instead):
			continue
		}
		gone = append(gone, c)
	}
	return gone
}

// stillThere returns the added element with the same keys as a removed one, by the list's schema.
func stillThere(changes []tree.Change, c tree.Change, same func(list tree.Path, a, b any) bool) (any, bool) {
	if len(c.Path) == 0 || c.Kind != tree.Removed || !c.Path[len(c.Path)-1].Element {
		return nil, false
	}
	list := c.Path[:len(c.Path)-1]
	for _, other := range changes {
		if other.Kind == tree.Added && len(other.Path) == len(c.Path) && other.Path.HasPrefix(list) && same(list, c.Old, other.New) {
			return other.New, true
		}
	}
	return nil, false
}

// inPlace returns the element at the place of a removed one, if neither has a key and the length of their list is the
// same. Fields that identify an element must not differ.
func inPlace(before, after any, c tree.Change) (any, bool) {
	if !isElement(c, tree.Removed) || !strings.HasPrefix(c.Path[len(c.Path)-1].Key, "{") {
		return nil, false
	}
	list := c.Path[:len(c.Path)-1]
	value, _ := tree.Get(before, list)
	from, _ := value.([]any)
	value, _ = tree.Get(after, list)
	to, _ := value.([]any)
	i := slices.IndexFunc(from, func(e any) bool { return tree.Equal(e, c.Old) })
	if i < 0 || len(from) != len(to) {
		return nil, false
	}
	now, isObject := to[i].(map[string]any)
	old, _ := c.Old.(map[string]any)
	if !isObject || len(old) == 0 || slices.ContainsFunc(from, func(e any) bool { return tree.Equal(e, now) }) {
		return nil, false // an element that was there before
	}
	return now, !contradicts(old, now)
}

// contradicts reports whether two objects, or the objects in them, differ in a field that identifies an element.
func contradicts(old, now map[string]any) bool {
	for field, x := range old {
		inner, isObject := x.(map[string]any)
		other, areObjects := now[field].(map[string]any)
		switch {
		case isObject && areObjects && contradicts(inner, other):
			return true
		case !isObject && slices.Contains(knownBy, field) && !tree.Equal(x, now[field]):
			return true
		}
	}
	return false
}

// onlyAdds reports whether the patches of all calls add members and elements, and replace nothing, so that they remove
// nothing either.
func onlyAdds(out *session.Outcome) bool {
	for _, call := range out.Calls {
		operations, err := jsonpatch.DecodePatch(call.Patch)
		if err != nil && len(call.Patch) > 0 {
			return false
		}
		doc := []byte(call.Exchange.Object)
		for _, operation := range operations {
			pointer, err := operation.Path()
			if err != nil || operation.Kind() != "add" || !addsNew(doc, pointer) {
				return false
			}
			if doc, err = (jsonpatch.Patch{operation}).Apply(doc); err != nil {
				return false
			}
		}
	}
	return true
}

// addsNew reports whether an add at a JSON pointer inserts an element, or sets a member that is absent.
func addsNew(raw []byte, pointer string) bool {
	doc, err := tree.Decode(raw)
	if err != nil || pointer == "" {
		return false
	}
	parent, _ := tree.Get(doc, tree.At(doc, pointer[:strings.LastIndexByte(pointer, '/')]))
	if _, isList := parent.([]any); isList {
		return true
	}
	return !tree.Has(doc, tree.At(doc, pointer))
}

// inSibling returns the container with the name of a removed one in another list of containers of the same Pod.
func inSibling(after any, c tree.Change) (any, bool) {
	n := len(c.Path)
	if n < 2 || c.Kind != tree.Removed || !c.Path[n-1].Element || !slices.Contains(containerLists, c.Path[n-2].Name) {
		return nil, false
	}
	for _, list := range containerLists {
		if now, ok := tree.Get(after, c.Path[:n-2].Member(list).Element(c.Path[n-1].Key, 0)); ok && list != c.Path[n-2].Name {
			return now, true
		}
	}
	return nil, false
}

// containerLists are the lists of containers in a Pod. Their elements have different names.
var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

// Each group in unions lists fields that exclude each other: setting one of them replaces another.
var unions = [][]string{{"value", "valueFrom"}, {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}}

// overwritten reports whether a field was removed because another field of its union was set, such as a variable's
// value in place of a reference.
func overwritten(after any, p tree.Path) bool {
	last := p[len(p)-1]
	for _, fields := range unions {
		if !last.Element && slices.Contains(fields, last.Name) {
			return slices.ContainsFunc(fields, func(name string) bool { return tree.Has(after, p[:len(p)-1].Member(name)) })
		}
	}
	return false
}

// replaced reports whether another element took the place of a removed one, and records it in instead. A text can
// replace several removed texts that it joins.
func replaced(changes []tree.Change, c tree.Change, instead map[int]string) bool {
	if last := c.Path[len(c.Path)-1]; !last.Element || c.Path.Last() == "finalizers" {
		return false
	}
	list := c.Path[:len(c.Path)-1]
	for i, other := range changes {
		if other.Kind == tree.Added && other.New == any("ALL") && other.Path.HasPrefix(list) {
			return true // the capability ALL includes every other one
		}
		if other.Kind != tree.Added || len(other.Path) != len(c.Path) || !other.Path.HasPrefix(list) {
			continue
		}
		text, _ := c.Old.(string)
		rest, taken := instead[i]
		switch {
		case taken && text != "" && strings.Contains(rest, text):
		case taken || !similar(c.Old, other.New) && !extends(c.Old, other.New) && !completes(list, c.Old):
			continue
		default:
			rest, _ = other.New.(string)
		}
		before, after, _ := strings.Cut(rest, text)
		instead[i] = before + "\n" + after
		return true
	}
	return false
}

// completes reports whether a removed element of the list was empty, so that an added element can be the same one with
// its fields filled. It returns false for lists in which an empty element means everything.
func completes(list tree.Path, element any) bool {
	fields, isObject := element.(map[string]any)
	return isObject && len(fields) == 0 && !isSwitch(list.Last())
}

// isOwn reports whether a path leads into a part that the webhook may set: a container or volume that it adds if it is
// missing, or a container's command, which is one value.
func (t *Trial) isOwn(before *objects.Object, p tree.Path) bool {
	for i, step := range p {
		if !step.Element && step.Name == "command" {
			return true
		}
		if !step.Element || i == len(p)-1 || !slices.Contains([]string{"containers", "initContainers", "volumes"}, p[i-1].Name) {
			continue
		}
		if p[i-1].Name == "volumes" && mounts(before.Doc, nameIn(before.Doc, p[:i+1])) > 0 && (len(p) == i+1 || p[i+1].Name != "emptyDir") {
			continue // containers mount the volume, and it gets another source
		}
		doc, ok := tree.Remove(before.Doc, p[:i+1])
		if !ok {
			continue
		}
		if p[i-1].Name == "volumes" {
			doc = unmounted(doc, nameIn(before.Doc, p[:i+1]))
		}
		if without, ok := t.Valid(doc); ok {
			if out := t.F(t.Fresh(), session.Query{Object: without}); out.OK() && tree.Has(out.After.Doc, p[:i+1]) {
				return true
			}
		}
	}
	return false
}

// nameIn returns the name of the object at a path.
func nameIn(doc any, p tree.Path) string {
	value, _ := tree.Get(doc, p.Member("name"))
	name, _ := value.(string)
	return name
}

// namesOf adds the name of an element, or of each element of a list, to names.
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

// allNamed reports whether value has named elements and names contains all their names.
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

// mounts returns how often containers mount the volume.
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

// unmounted returns a copy of a document in which no container mounts the volume.
func unmounted(doc any, volume string) any {
	tree.Lists(doc, func(p tree.Path, list []any) {
		if p.Last() != "volumeMounts" {
			return
		}
		kept := slices.DeleteFunc(slices.Clone(list), func(mount any) bool {
			m, ok := mount.(map[string]any)
			return ok && m["name"] == volume
		})
		doc, _ = tree.Put(doc, p, kept)
	})
	return doc
}
