// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// underOtherNames checks that the result for x does not depend on an earlier object with the same name. It sends x
// under two new names. Before the second call, it sends c.Before[0] under the second name. The results must be equal
// except for the name. The check decides nothing if the webhook derives values from the name, such as a hash.
func (l pure) underOtherNames(c *Case, x *objects.Object) *Finding {
	instances := l.Fresh()
	call := func(doc any, name string) (*session.Outcome, any) {
		doc, ok := tree.Put(doc, edits.Metadata.Member("name"), name)
		if !ok {
			return nil, nil
		}
		o, ok := l.Valid(doc)
		if !ok {
			return nil, nil
		}
		out := l.F(instances, session.Query{Object: o})
		if !out.OK() {
			return nil, nil
		}
		return out, withoutName(out.After.Doc, name)
	}
	first, want := call(x.Doc, l.newName())
	other, same := call(x.Doc, l.newName())
	if first == nil || other == nil || len(l.unintended(c.Law, want, same)) > 0 || len(c.Before) == 0 {
		return nil
	}
	name := l.newName()
	if out, _ := call(c.Before[0], name); out == nil {
		return nil
	}
	again, got := call(x.Doc, name)
	if again == nil {
		return nil
	}
	changes := l.unintended(c.Law, want, got)
	if len(changes) == 0 {
		return nil
	}
	return l.Finding(c, Varies, "the result depends on an earlier object that had the same name: "+summary(changes), first, again)
}

// unintended returns the changes from a to b without those that exceptions cover.
func (t *Trial) unintended(law Law, a, b any) []tree.Change {
	return slices.DeleteFunc(tree.Changes(a, b), func(c tree.Change) bool { return t.intended(law, c) })
}

// newName returns a name that the run has not used.
func (t *Trial) newName() string { return fmt.Sprintf("renamed-%d", t.Calls()) }

// withoutName returns a copy of value with NAME in place of the name in all texts and keys.
func withoutName(value any, name string) any {
	switch value := value.(type) {
	case string:
		return strings.ReplaceAll(value, name, "NAME")
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = withoutName(inner, name)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, inner := range value {
			out[strings.ReplaceAll(key, name, "NAME")] = withoutName(inner, name)
		}
		return out
	}
	return value
}
