// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/texts"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// keepsChange checks that a webhook keeps a later change of an annotation, a label or a field: the user changes it in
// the manifest, and applies the manifest. The stored object keeps what the webhook has added. A webhook may keep values
// that follow from the old value, but it must not drop the new one, or write the old and the new value into one text.
func (l updates) keepsChange(c *Case) *Finding {
	manifest, ok := l.Kind.ManifestOf(c.Object)
	if !ok || len(c.Edits) != 1 || !l.Handles(admissionv1.Update) || l.excepted(c.Law, c.Edits[0].Path) {
		return nil
	}
	changed, ok := c.Edits[0].Apply(manifest)
	if !ok {
		return nil
	}
	created, ok := l.createdFrom(manifest)
	if !ok {
		return nil
	}
	fresh, ok := l.createdFrom(changed)
	if !ok || edits.IsNote(c.Edits[0].Path) && !l.affectsOthers(c, manifest, fresh) {
		return nil
	}
	defer l.startUpdates(nil)()
	s := l.Fresh()
	stored, ok := l.settled(s, created.After)
	if !ok {
		return nil
	}
	note, value := c.Edits[0].Path, brief(fmt.Sprint(c.Edits[0].Value))
	old := stored.After
	if status := l.Kind.StatusExample(); status != nil && l.Kind.GoType != nil { // some fields can change only in a later phase
		if doc, ok := tree.Put(old.Doc, statusPath, status); ok {
			old = l.asSent(doc)
		}
	}
	if old == nil {
		return nil
	}
	doc, ok := c.Edits[0].Apply(old.Doc)
	if !ok {
		return nil
	}
	applied := l.asSent(doc)
	if applied == nil || len(l.Kind.UpdateProblems(applied, old)) > 0 {
		return nil
	}
	out := l.F(s, session.Query{Object: applied, Old: old})
	if !out.OK() || len(l.differences(c.Law, fresh.After, created.After)) == 0 {
		return nil
	}
	unchanged := len(l.withoutEncoding(l.differences(c.Law, old, out.After))) == 0
	switch kept, _ := tree.Get(out.After.Doc, note); {
	case kept == nil && unchanged:
		v := l.Finding(c, IgnoresChange, fmt.Sprintf("the webhook drops a change of %s: the user sets it to %s and applies the manifest, but the stored object does not change", note, value), fresh, out)
		v.Advice = len(out.Warnings) > 0
		return v
	case kept != nil && unchanged:
		v := l.Finding(c, IgnoresChange, fmt.Sprintf("the webhook undoes a change of %s: the user sets it to %s and applies the manifest, but the webhook writes the old value back", note, value), fresh, out)
		v.Advice = edits.IsNote(note) || len(out.Warnings) > 0 || l.followsOld(applied, fresh.After, note)
		return v
	}
	if text, key, format := l.keptPair(created.After, fresh.After, out.After); text != nil && !l.excepted(c.Law, text) {
		value, _ := tree.Get(out.After.Doc, text)
		v := l.Finding(c, Accumulates, fmt.Sprintf("%s has two values for the key %s, because the webhook adds the new value and keeps the old one when the user changes %s: %s", text, key, note, brief(fmt.Sprint(value))), stored, out)
		v.Advice = format == " " // options of a command, of which the last one counts
		return v
	}
	if at := l.keptResult(c, manifest, created.After, fresh.After, out.After, old); at != nil && edits.IsNote(note) {
		value, _ := tree.Get(out.After.Doc, at)
		v := l.Finding(c, IgnoresChange, fmt.Sprintf("the webhook sets %s to %s on CREATE, and keeps it when the user sets %s later. A new object with this value gets another result", at, brief(string(tree.Encode(value))), note), fresh, out)
		v.Advice = true
		return v
	}
	return nil
}

// keptResult returns the path of a value that the webhook has set in a created object and keeps in an updated one,
// although it sets another value in a fresh one. The manifest does not have the value, and an update of the old object may
// change it.
func (l updates) keptResult(c *Case, manifest any, created, fresh, updated, old *objects.Object) tree.Path {
	for _, d := range l.differences(c.Law, created, fresh) {
		now, _ := tree.Get(updated.Doc, d.Path)
		if d.Kind != tree.Replaced || edits.IsNote(d.Path) || tree.Has(manifest, d.Path) || !tree.Equal(now, d.Old) || l.drawn(d.Path) {
			continue
		}
		doc, ok := tree.Put(updated.Doc, d.Path, d.New)
		if changed := l.asSent(doc); ok && changed != nil && len(l.Kind.UpdateProblems(changed, old)) == 0 {
			return d.Path
		}
	}
	return nil
}

// followsOld reports whether the webhook writes the value of the old object into an updated one. Such a webhook forbids
// changes on purpose. old differs from the stored object, so a webhook that keeps the value elsewhere writes another one.
func (l updates) followsOld(applied, old *objects.Object, at tree.Path) bool {
	out := l.F(l.Fresh(), session.Query{Object: applied, Old: old})
	if !out.OK() {
		return true
	}
	was, _ := tree.Get(old.Doc, at)
	is, _ := tree.Get(out.After.Doc, at)
	return tree.Equal(was, is)
}

// affectsOthers reports whether the value that the edit of a case sets changes other fields of the result. Otherwise the
// webhook may ignore the value because it is invalid. fresh is the result for a new object with the edit.
func (l updates) affectsOthers(c *Case, manifest any, fresh *session.Outcome) bool {
	note := c.Edits[0].Path
	without, ok := tree.Remove(manifest, note)
	if !ok {
		without = manifest // the value is new
	}
	bare, ok := l.createdFrom(without)
	return ok && slices.ContainsFunc(l.differences(c.Law, bare.After, fresh.After), func(d tree.Change) bool { return !note.HasPrefix(d.Path) })
}

// keptPair returns the path of a text that has two pairs with one key, such as team=a,team=b, with the key and the
// separator. The webhook has written both: the first pair at the creation, and the second one because the user changed
// the object.
func (l updates) keptPair(created, fresh, updated *objects.Object) (text tree.Path, key string, format texts.Format) {
	tree.Leaves(updated.Doc, func(p tree.Path, value any) {
		after, isText := value.(string)
		old, _ := tree.Get(created.Doc, p)
		other, _ := tree.Get(fresh.Doc, p)
		before, wasText := old.(string)
		early, isEarly := other.(string)
		if text != nil || !isText || !wasText || !isEarly || before == after {
			return
		}
		for _, f := range []texts.Format{",", ";", " "} {
			own, now := pairs(f.Items(before)), pairs(f.Items(after))
			fromChange := pairs(f.Items(early))
			for _, name := range slices.Sorted(maps.Keys(fromChange)) {
				if values := fromChange[name]; len(values) == 1 && len(own[name]) == 1 && len(now[name]) == 2 && slices.Contains(now[name], own[name][0]) && slices.Contains(now[name], values[0]) {
					text, key, format = slices.Clone(p), name, f
					return
				}
			}
		}
	})
	return text, key, format
}

// pairs returns the values of items such as team=a, by their keys.
func pairs(items []string) map[string][]string {
	all := map[string][]string{}
	for _, item := range items {
		if key, value, ok := strings.Cut(item, "="); ok {
			all[key] = append(all[key], value)
		}
	}
	return all
}
