// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/texts"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// takesChange checks that a webhook respects a later change of an annotation or label: the author changes it in the
// manifest, and applies the manifest. The stored object keeps what the webhook has added. A webhook may keep values that
// follow from the old annotation, but it must not drop the new one, nor have both in one text.
func (l updates) takesChange(c *Case) *Finding {
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
	if !ok {
		return nil
	}
	defer l.startUpdates(nil)()
	s := l.Fresh()
	stored, ok := l.settled(s, created.After)
	if !ok {
		return nil
	}
	applied, ok := l.Edited(stored.After, c.Edits)
	if !ok || len(l.Kind.UpdateProblems(applied, stored.After)) > 0 {
		return nil
	}
	out := l.F(s, session.Query{Object: applied, Old: stored.After})
	if !out.OK() || len(l.differences(c.Law, fresh.After, created.After)) == 0 {
		return nil
	}
	note := c.Edits[0].Path
	if !tree.Has(out.After.Doc, note) && len(l.withoutEncoding(l.differences(c.Law, stored.After, out.After))) == 0 {
		return l.Finding(c, IgnoresChange, fmt.Sprintf("an author changes %s to %s in the manifest and applies it, and the webhook drops the change: the object stays as it was", note, brief(fmt.Sprint(c.Edits[0].Value))), fresh, out)
	}
	if text, key := l.keptPair(created.After, fresh.After, out.After); text != nil && !l.excepted(c.Law, text) {
		value, _ := tree.Get(out.After.Doc, text)
		return l.Finding(c, Accumulates, fmt.Sprintf("an author changes %s in the manifest and applies it, and the webhook adds %s again to the text %s beside its old value: %s", note, key, text, brief(fmt.Sprint(value))), stored, out)
	}
	return nil
}

// keptPair returns the path of a text that has two pairs with one key, such as team=a,team=b, and the key. The webhook has
// written both: the first pair at the creation, and the second one because the author changed the object.
func (l updates) keptPair(created, fresh, updated *objects.Object) (text tree.Path, key string) {
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
			for name, values := range pairs(f.Items(early)) {
				if len(values) == 1 && len(own[name]) == 1 && len(now[name]) == 2 && slices.Contains(now[name], own[name][0]) && slices.Contains(now[name], values[0]) {
					text, key = slices.Clone(p), name
					return
				}
			}
		}
	})
	return text, key
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
