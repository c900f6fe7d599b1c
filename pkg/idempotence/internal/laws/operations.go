// SPDX-License-Identifier: Apache-2.0

package laws

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
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
