// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// order checks L11: the result does not depend on the order of two webhooks.
type order struct{ *Trial }

func (l order) check(c *Case) *Finding {
	x, rival, ok := l.rivalOf(c)
	if !ok {
		return nil
	}
	if rival.OrderMatters() {
		return nil
	}
	defer l.only(rival.of)()
	ours, theirs := l.webhookFirst(x, rival), l.alternate(x, rival, true)
	first, history, second, other := ours.last, ours.history, theirs.last, theirs.history
	if !ours.settled || !theirs.settled || first == nil || second == nil {
		return nil // L12 reports it
	}
	differences := l.withoutEncoding(l.content(c.Law, first, second))
	switch rival.Conduct {
	case edits.Fills:
		return l.keptOut(c, x, history, other, first, second)
	case edits.Rewrites:
		differences = l.stale(x, history[0], other[0], second, differences)
	}
	if len(differences) == 0 {
		return nil
	}
	v := l.Finding(c, Order, fmt.Sprintf("with another webhook, %q, the result depends on who is called first: %s",
		c.Rival, summary(differences)), append(history[:min(2, len(history))], other[:min(2, len(other))]...)...)
	if !slices.ContainsFunc(differences, func(d tree.Change) bool {
		return !writes(history[0].After, x, d.Path) || !writes(other[0].After, x, d.Path)
	}) {
		v.Advice = true // both webhooks write there, probably on purpose
	}
	settle := func(o *objects.Object) *objects.Object {
		return l.alternate(o, rival, false).last
	}
	if rival.unaware && l.setOnce(c.Law, x, history[0].After, first, second, strings.HasSuffix(c.Rival, edits.FrontRival), settle) {
		v.Advice = true
	}
	return v
}

// writes reports whether a call that changed x to after changed the value at a path.
func writes(after, x *objects.Object, p tree.Path) bool {
	return slices.ContainsFunc(tree.Changes(x.Doc, after.Doc), func(c tree.Change) bool { return p.HasPrefix(c.Path) || c.Path.HasPrefix(p) })
}
