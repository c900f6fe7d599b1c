// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// pure checks L3: the same request gives the same object.
type pure struct{ *Trial }

// repeats is the number of times that a request is sent to compare the responses. Go does not shuffle small maps
// evenly: one of the two orders of two keys appears in 88 % of the iterations.
const repeats = 110

func (l pure) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	if c.Variant == AnotherTime {
		return l.checkAfterGaps(c, x)
	}
	if c.Variant == Parallel {
		return l.inParallel(c, x)
	}
	if c.Variant == OtherName {
		return l.underOtherNames(c, x)
	}
	if c.Variant == AfterRun {
		return nil // only a run has all the requests
	}
	same := l.Fresh()
	uid := session.NewUID()
	first := l.F(same, session.Query{Object: x, UID: uid})
	if c.Variant == NextSecond {
		return l.checkInNextSecond(c, x)
	}
	if c.Variant == WithoutNamespace {
		return l.readsNamespace(c, x, first)
	}
	times := repeats
	if c.Variant == Few {
		times = 4
	}
	for i := range times {
		s, how := same, "sent again to the same instance"
		if i%2 == 1 && !l.OldInstancesOnly {
			s, how = l.Fresh(), "sent to a fresh instance"
		}
		if len(c.Before) > 0 {
			how = "sent after other objects"
			s = l.Fresh()
			for _, doc := range c.Before {
				if o, ok := l.Valid(doc); ok {
					l.F(s, session.Query{Object: o})
				}
			}
		}
		q := session.Query{Object: x}
		if i == 0 && len(c.Before) == 0 {
			q.UID = uid // the API server's client repeats a call if a proxy asks for it with Retry-After
			how = "sent again with the same uid"
		}
		l.Checks++
		if v := l.sameAnswer(c, first, l.F(s, q), how); v != nil {
			return v
		}
	}
	for i, w := range l.Webhooks {
		for _, replica := range w.Replicas[min(1, len(w.Replicas)):] {
			s := append(session.Instances(nil), same...)
			s[i] = replica
			if v := l.sameAnswer(c, first, l.F(s, session.Query{Object: x}), "sent to another replica"); v != nil {
				return v
			}
		}
	}
	return nil
}

// readsNamespace repeats the request without metadata.namespace, as old API servers sent it. It returns a finding if
// the result differs from first.
func (l pure) readsNamespace(c *Case, x *objects.Object, first *session.Outcome) *Finding {
	doc, ok := tree.Remove(x.Doc, edits.Metadata.Member("namespace"))
	if !ok || !first.OK() {
		return nil
	}
	out := l.F(l.Fresh(), session.Query{Object: x, Raw: tree.Encode(doc)})
	if out.OK() {
		changes := slices.DeleteFunc(l.differences(c.Law, first.After, out.After), func(c tree.Change) bool {
			return c.Path.String() == "metadata.namespace"
		})
		if len(changes) == 0 {
			return nil
		}
	}
	v := l.Finding(c, ReadsNamespace, "the webhook reads metadata.namespace, which older API servers leave empty: use request.namespace", first, out)
	v.Advice = true
	return v
}

// AfterRun checks L3 with the first answer to a request and one that came after all other requests of a run. It returns
// nil if equal requests get different answers now: then the other requests are not the cause.
func (k *Checker) AfterRun(x *objects.Object, first *session.Outcome) *Finding {
	l, c := pure{k.Trial}, &Case{Law: L3, Object: x.Doc, Variant: AfterRun}
	again := l.Request(l.NewInstances(), session.Query{Object: x})
	f := l.sameAnswer(c, first, again, "sent again after other objects")
	if f == nil || l.sameAnswer(c, again, l.Request(l.NewInstances(), session.Query{Object: x}), "") != nil || l.Over() {
		return nil
	}
	return f
}

// sameAnswer returns a finding if the responses to two equal requests differ.
func (l pure) sameAnswer(c *Case, first, again *session.Outcome, how string) *Finding {
	switch {
	case first.OK() != again.OK():
		return l.Finding(c, DecidesDifferently, fmt.Sprintf("the same request, %s, is %s the first time and %s the second", how, described(first), described(again)), first, again)
	case !first.OK():
		return nil
	}
	if changes := l.differences(c.Law, first.After, again.After); len(changes) > 0 {
		return l.Finding(c, Varies, fmt.Sprintf("the same request, %s, gets a different result: %s", how, summary(changes)), first, again)
	}
	return nil
}
