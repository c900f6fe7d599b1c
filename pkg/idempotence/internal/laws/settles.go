// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// settles checks L12: two webhooks reach a state that neither changes.
type settles struct{ *Trial }

func (l settles) check(c *Case) *Finding {
	x, rival, ok := l.rivalOf(c)
	if !ok {
		return nil
	}
	defer l.only(rival.of)()
	turns := l.webhookFirst(x, rival)
	last, history, settled := turns.last, turns.history, turns.settled
	if v := l.spoiled(c, rival, history); v != nil || settled {
		if v == nil && last != nil {
			v = l.repeats(c, x, rival, last, history)
		}
		return v
	}
	if rival.OrderMatters() && !growsForever(history) {
		return nil // the rival removes or changes what the webhook needs
	}
	i, changes := l.lastMove(c.Law, history)
	who := fmt.Sprintf("the webhook and the webhook %q change the object in turns forever", c.Rival)
	switch {
	case l.moves(c.Law, history, i-1):
	case i%2 == 0:
		who = fmt.Sprintf("the webhook changes the object in every call, but the webhook %q does not", c.Rival)
	default:
		who = fmt.Sprintf("the webhook %q changes the object in every call, but this one does not", c.Rival)
	}
	shown := history[:3+i%2]
	if !l.moves(c.Law, shown, len(shown)-1) {
		shown = history[i-2-i%2 : i+1]
	}
	v := l.Finding(c, NeverSettles, who+": "+summary(changes), shown...)
	v.Advice = rival.unaware && l.isContested(c.Law, history, i) || onlyRepeats(history[i-1].After.Doc, history[i].After.Doc)
	return v
}

// lastMove returns the index of the last call that changes the object, and its changes. history must be one that does
// not settle.
func (l settles) lastMove(law Law, history []*session.Outcome) (i int, changes []tree.Change) {
	for i = len(history) - 1; i > 2; i-- {
		if changes = l.differences(law, history[i-1].After, history[i].After); len(changes) > 0 {
			break
		}
	}
	return i, changes
}

// moves reports whether the i-th call of a history changes the object.
func (l settles) moves(law Law, history []*session.Outcome, i int) bool {
	return len(l.differences(law, history[i-1].After, history[i].After)) > 0
}
