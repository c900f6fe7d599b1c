// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// unchanged checks that a call does not change the result of the previous call. before and again are the results of the
// two calls.
func (t *Trial) unchanged(c *Case, before, again *session.Outcome) *Finding {
	if !again.OK() {
		return nil // L2 reports it
	}
	changes := t.differences(c.Law, before.After, again.After)
	if t.Impure && changeMode(changes) != Grows {
		return nil // the webhook may respond differently to equal requests
	}
	if len(changes) > 0 {
		v := t.Finding(c, changeMode(changes), "the next call changes the result again: "+summary(changes), before, again)
		v.Advice = c.Law != L1 && onlyRepeats(before.After.Doc, again.After.Doc)
		return v
	}
	if again.Patched && len(t.Webhooks) == 1 && sameDoc(before.After.Doc, again.After.Doc) {
		return t.noOp(c, "the next call", again, before, again)
	}
	return nil
}

// noOp returns a finding about a call whose patch changes nothing. The finding is a violation if the patch adds an
// element again that the API server drops as a duplicate. Otherwise it is advice, and noOp returns nil if exceptions
// cover each path in the patch.
func (t *Trial) noOp(c *Case, call string, out *session.Outcome, shown ...*session.Outcome) *Finding {
	if path, again := addsAgain(out); again && !t.excepted(c.Law, path) {
		return t.Finding(c, Grows, call+" adds an element again, which the API server drops: "+path.String(), shown...)
	}
	if t.NoOpKnown || t.needing(func() bool { return t.namesExcepted(c.Law, out) }) {
		return nil
	}
	v := t.Finding(c, NoOpPatch, call+" changes nothing, but sends a patch. The API server compares the objects and stores nothing new. "+
		"At most, it calls other webhooks once more", shown...)
	v.Advice = true
	return v
}

// addsAgain returns the path of a list element that the last patch of out adds although the list has one with the same
// key. It returns false if there is no such element.
func addsAgain(out *session.Outcome) (tree.Path, bool) {
	sent, err := tree.Decode(out.Calls[len(out.Calls)-1].Exchange.Object)
	patched, other := tree.Decode(out.Result)
	if err != nil || other != nil {
		return nil, false
	}
	for _, c := range tree.Changes(sent, patched) {
		if isElement(c, tree.Added) && !isVoid(c.New) && c.Path[len(c.Path)-1].Nth > 0 {
			list := c.Path[:len(c.Path)-1]
			if length(patched, list) > length(sent, list) { // otherwise, a member of an element was changed
				return c.Path, true
			}
		}
	}
	return nil, false
}

// length returns the number of elements of the list at a path.
func length(doc any, list tree.Path) int {
	value, _ := tree.Get(doc, list)
	elements, _ := value.([]any)
	return len(elements)
}

// namesExcepted reports whether exceptions cover the path of each operation in the last patch of out.
func (t *Trial) namesExcepted(law Law, out *session.Outcome) bool {
	operations, err := jsonpatch.DecodePatch(out.Patch)
	if err != nil || len(operations) == 0 {
		return false
	}
	for _, operation := range operations {
		pointer, err := operation.Path()
		if err != nil || !t.excepted(law, tree.At(out.After.Doc, pointer)) {
			return false
		}
	}
	return true
}

// failed returns a finding if a call got no decision. L8 reports faults of the envelope, and L10 faults of the patch.
func (t *Trial) failed(c *Case, o *session.Outcome) *Finding {
	if o.Fault == "" || o.FaultOf != session.NoDecision {
		return nil
	}
	if o.Late() {
		return t.Finding(c, Hangs, "the webhook does not answer in time", o)
	}
	return t.Finding(c, ServerError, "the webhook fails: "+textutil.FirstLine(o.Fault), o)
}

// sameAs checks that two equivalent requests have the same result.
func (t *Trial) sameAs(c *Case, plain, other *session.Outcome, what string) *Finding {
	switch {
	case t.Impure:
		return nil // the webhook may respond differently to equal requests
	case plain.OK() != other.OK():
		return t.Finding(c, DecidesDifferently, fmt.Sprintf("the object is %s, but in %s it is %s", described(plain), what, described(other)), plain, other)
	case !plain.OK():
		return nil
	}
	if changes := t.differences(c.Law, plain.After, other.After); len(changes) > 0 {
		return t.Finding(c, Differs, what+" gets a different result: "+summary(changes), plain, other)
	}
	return nil
}
