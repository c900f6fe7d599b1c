// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// afterCreation checks L1 and L2 on updates of the webhook's own result.
type afterCreation struct{ *Trial }

func (l afterCreation) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok || l.Operation != admissionv1.Create || !l.Handles(admissionv1.Update) {
		return nil
	}
	created := l.first(x)
	stored, ok := l.stored(x)
	if !ok {
		return nil
	}
	defer l.startUpdates(nil)()
	s := l.Fresh()
	first := l.F(s, session.Query{Object: stored, Old: stored})
	if c.Law == L2 {
		return l.allowsUpdate(c, x, created, first)
	}
	if v := l.changesWithName(c, x, stored, created, first); v != nil {
		return v
	}
	if !first.OK() || len(l.Kind.UpdateProblems(first.After, stored)) > 0 {
		return nil // L2 or L6 reports it
	}
	again := l.F(s, session.Query{Object: first.After, Old: first.After})
	if !again.OK() {
		return nil
	}
	if changes := l.differences(c.Law, first.After, again.After); len(changes) > 0 {
		return l.Finding(c, changeMode(changes), "each update that changes nothing makes the webhook change the object again: "+summary(changes), first, again)
	}
	return nil
}

// changesWithName returns a finding if x was created with a generateName, and its first update replaces values that the
// webhook set while the object had no name. There is no finding if an object that was created with this name has such
// changes, too: then they do not depend on the name.
func (l afterCreation) changesWithName(c *Case, x, stored *objects.Object, created, update *session.Outcome) *Finding {
	if objects.NameOf(x) != "" || !update.OK() {
		return nil
	}
	changes := l.replacedParts(x, created.After, stored, update.After)
	if len(changes) == 0 {
		return nil
	}
	named, ok := tree.Put(x.Doc, edits.Metadata.Member("name"), objects.NameOf(stored))
	if !ok {
		return nil
	}
	plain, ok := l.createdAs(named)
	if !ok {
		return nil
	}
	same, ok := l.Valid(plain.After.Doc)
	if !ok {
		return nil
	}
	again := l.F(l.Fresh(), session.Query{Object: same, Old: same})
	if !again.OK() || len(l.replacedParts(x, plain.After, same, again.After)) > 0 {
		return nil
	}
	shown := *created
	shown.After = stored
	return l.Finding(c, ChangesWithName, "the object was created with a generateName. The first update, in which it has a name, replaces values that the webhook set: "+summary(changes), &shown, update)
}

// createdAs returns the result of the webhook for the creation of doc. It sets l.Operation to CREATE for this call,
// because the case checks updates. It returns false if doc is invalid, is denied, or has an invalid result.
func (l afterCreation) createdAs(doc any) (*session.Outcome, bool) {
	update := l.Operation
	l.Operation = admissionv1.Create
	defer func() { l.Operation = update }()
	x, ok := l.Valid(doc)
	if !ok {
		return nil, false
	}
	out := l.F(l.Fresh(), session.Query{Object: x})
	return out, out.OK() && len(l.Kind.Problems(out.After)) == 0
}

// replacedParts returns the values that the webhook set when x was created and that an update of stored then replaced.
// created is the result of the creation, and updated that of the update.
func (l afterCreation) replacedParts(x, created, stored, updated *objects.Object) []tree.Change {
	return slices.DeleteFunc(l.differences(L1, stored, updated), func(d tree.Change) bool {
		was, had := tree.Get(x.Doc, d.Path)
		set, has := tree.Get(created.Doc, d.Path)
		return d.Kind != tree.Replaced || !has || had && tree.Equal(was, set) || l.drawn(d.Path)
	})
}

// allowsUpdate checks L2 on an update of the webhook's result. There is no finding if the webhook denies all updates.
func (l afterCreation) allowsUpdate(c *Case, x *objects.Object, created, update *session.Outcome) *Finding {
	if v := l.failed(c, update); v != nil {
		return v
	}
	if update.Fault != "" || update.Allowed || len(l.differences("", x, created.After)) == 0 {
		return nil
	}
	plain, ok := l.Valid(x.Doc)
	if !ok || !l.F(l.Fresh(), session.Query{Object: plain, Old: plain}).OK() {
		return nil
	}
	return l.Finding(c, Denied, "the webhook allows the object and then denies an update of its own result: "+update.Message, created, update)
}

// deletionRequest checks L2 on a DELETE request: the webhook must allow or deny it.
type deletionRequest struct{ *Trial }

func (l deletionRequest) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok || !l.Handles(admissionv1.Delete) {
		return nil
	}
	stored, ok := l.stored(x)
	if !ok {
		return nil
	}
	out := l.F(l.Fresh(), session.Query{Operation: admissionv1.Delete, Old: stored})
	if out.Fault == "" {
		return nil // a denial is a decision
	}
	return l.Finding(c, ServerError, "the object cannot be deleted: "+textutil.FirstLine(out.Fault), out)
}
