// SPDX-License-Identifier: Apache-2.0

package laws

import "github.com/admitkit/admitkit/pkg/idempotence/internal/session"

// A Checker checks cases of laws with objects of one kind.
type Checker struct{ *Trial }

// New returns a checker that sends its requests through s.
func New(s *session.Session, options Options) *Checker { return &Checker{NewTrial(s, options)} }

// Check checks a case and returns a finding if the law fails. It returns only findings that appear again on fresh
// instances. decided is false if the case could not show whether the law passes. Check ignores a result that arrives
// after the end of the run.
func (k *Checker) Check(c *Case) (f *Finding, decided bool) {
	k.Checks++
	if k.Step != nil {
		k.Step(c.Law)
	}
	k.reuse.keep()
	k.law, k.plain, k.other = c.Law, 0, 0
	defer func() { k.law = "" }()
	f = k.checkOnce(c)
	if f != nil && !k.Unshared && c.Variant != Parallel { // a replay uses fresh instances, so the finding must appear there
		k.Unshared, k.memo, k.updated = true, memo{}, updated{}
		f = k.checkOnce(c)
	}
	if k.Over() {
		return nil, false
	}
	return f, f != nil || k.other > 0 || k.plain > 1
}

func (k *Checker) checkOnce(c *Case) *Finding {
	if c.Old != nil {
		return k.checkOnUpdate(c)
	}
	return k.checkOnRequest(c)
}

// checkOnUpdate checks a case whose requests are updates of an old object.
func (k *Checker) checkOnUpdate(c *Case) *Finding {
	leave, ok := k.EnterUpdate(c.Old)
	if !ok {
		return nil
	}
	defer leave()
	v := k.checkOnRequest(c)
	if v != nil {
		v.Summary = "in an update: " + v.Summary
	}
	return v
}

// A check checks the cases of one law.
type check interface{ check(c *Case) *Finding }

// checkOnRequest runs the check of a case's law, if it has one.
func (k *Checker) checkOnRequest(c *Case) *Finding {
	of := k.checkOf(c)
	if of == nil {
		return nil
	}
	u := session.UserNamed(string(c.Variant))
	if u == nil {
		return of.check(c)
	}
	defer k.as(u)()
	v := of.check(c)
	if v != nil {
		v.Summary = "if " + u.Name + " makes the request: " + v.Summary
	}
	return v
}

// as lets a user make all requests, until undo is called.
func (t *Trial) as(u *session.User) (undo func()) {
	known := t.memo
	t.User, t.memo = u, memo{}
	return func() { t.User, t.memo = nil, known }
}

// checkOf returns the check of a case's law and variant, or nil.
func (k *Checker) checkOf(c *Case) check {
	switch c.Variant {
	case AfterCreation:
		return afterCreation{k.Trial}
	case SimilarNames:
		return similarNames{k.Trial}
	case ManyNames:
		return manyNames{k.Trial}
	case ExplicitZero:
		return explicitZero{k.Trial}
	case DeletionRequest:
		return deletionRequest{k.Trial}
	}
	switch c.Law {
	case L1:
		return secondCall{k.Trial}
	case L2:
		return noFailure{k.Trial}
	case L3:
		return pure{k.Trial}
	case L4a:
		return afterEdits{k.Trial}
	case L4b:
		return lateAdditions{k.Trial}
	case L5:
		if _, ok := inText(c); ok {
			return itemsThere{k.Trial}
		}
		return partsThere{k.Trial}
	case L6:
		return updates{k.Trial}
	case L7:
		return dryRun{k.Trial}
	case L8:
		return reviewVersions{k.Trial}
	case L9:
		return unknownFields{k.Trial}
	case L10:
		return patch{k.Trial}
	case L11:
		return order{k.Trial}
	case L12:
		return settles{k.Trial}
	}
	return nil
}
