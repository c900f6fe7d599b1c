// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"context"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Options configure the checks.
type Options struct {
	Exceptions []Exception
	Inputs     Inputs
	Rivals     Rivals
	Observe    func() any                      // returns what the webhook writes outside of the object, or nil
	Gaps       []time.Duration                 // for AnotherTime
	Bubble     func(func(ctx context.Context)) // runs a function with a fake clock, or nil
	Step       func(Law)                       // is called before each check, or nil

	// A test sets these fields to disable parts of laws, and requires that the harness then misses a known bug.
	OldInstancesOnly, FirstVersionOnly, UsualEncodingOnly bool
}

// Inputs tells the checks which values come from the user's samples, and how the schema identifies elements.
type Inputs interface {
	// Given reports whether a sample has a value at p. If so, the webhook may change the value on purpose. A copy of an
	// element (see edits.TwinSuffix) is treated like the original.
	Given(p tree.Path) bool
	// GivenIn reports whether a sample has a value at p, in any elements of the lists on the way.
	GivenIn(p tree.Path) bool
	// Same reports whether two list elements have equal keys by the schema.
	Same(list tree.Path, a, b any) bool
	// IsMap reports whether an object is a map by the schema, so that its members can have any name.
	IsMap(p tree.Path) bool
	// Value returns a value that the schema allows at p.
	Value(p tree.Path) (any, bool)
	// Varies reports whether the webhook has written a value that is not zero to p in some object.
	Varies(p tree.Path) bool
}

// A Trial has what the checks of all laws share, for objects of one kind. It sends requests, compares results and
// reports findings.
type Trial struct {
	*session.Session
	Options
	Impure bool // equal requests had different results
	Checks int  // number of checks made
	// NoOpKnown ends the search for patches without effect, because one was found.
	NoOpKnown bool
	// Unshared makes each law use fresh instances.
	Unshared bool

	needed  map[int]bool // exceptions that covered a change
	law     Law          // of the current case
	memo    memo
	updated updated
	reuse   reuse
	timed   timedCall
	shared  session.Instances // for laws that any instance can decide
	// plain and other count the requests of the current case on which the webhook decided: for x itself, and for
	// objects that the law derived from x.
	plain, other int
}

// NewTrial returns a trial that sends its requests through s.
func NewTrial(s *session.Session, options Options) *Trial {
	return &Trial{Session: s, Options: options, needed: map[int]bool{}}
}

// A memo caches the decoded object that consecutive cases share, and results for it.
type memo struct {
	doc    any // the document of the cases; compared by identity
	object *objects.Object
	first  *session.Outcome // of the first call of a fresh instance
	// contest is the last contest with object in which the webhook was called first.
	contest *contest
}

// ObjectOf returns the decoded object of a case, or false if the object is not valid.
func (t *Trial) ObjectOf(c *Case) (*objects.Object, bool) {
	if t.memo.object != nil && sameMap(c.Object, t.memo.doc) {
		return t.memo.object, true
	}
	x, ok := t.Valid(c.Object)
	if ok {
		t.memo = memo{doc: c.Object, object: x}
	}
	return x, ok
}

// first returns F(x), the result of a fresh instance for x. L1 to L3 call the webhook anew. Other laws share a cached
// result.
func (t *Trial) first(x *objects.Object) *session.Outcome {
	if t.memo.object != x {
		return t.F(t.Fresh(), session.Query{Object: x})
	}
	if t.memo.first == nil {
		t.memo.first = t.F(t.Fresh(), session.Query{Object: x})
	}
	return t.memo.first
}

// onAnyInstance lists the laws that pass or fail in single calls. A violation on a used instance must also appear on a
// fresh one.
var onAnyInstance = []Law{L2, L8, L9, L10}

// Fresh returns instances that have handled no calls. But laws that do not depend on an instance's state get shared
// instances, because creating new ones may be slow.
func (t *Trial) Fresh() session.Instances {
	if t.law != "" && !slices.Contains(onAnyInstance, t.law) || t.Unshared {
		return t.NewInstances()
	}
	if t.shared == nil {
		t.shared = t.NewInstances()
	}
	return slices.Clone(t.shared)
}

// F sends a request. For some laws it returns the result of an equal earlier request instead (see reusable).
func (t *Trial) F(s session.Instances, q session.Query) *session.Outcome {
	if t.Over() {
		return t.Request(s, q)
	}
	if q.Operation == "" {
		q.Operation = t.Operation
	}
	key, may := t.reusable(q)
	out := t.reuse.earlier[key]
	if !may || out == nil {
		out = t.Request(s, q)
	}
	if may {
		t.reuse.now[key] = out
	}
	t.count(q, out)
	return out
}

// count counts a request on which the webhook decided.
func (t *Trial) count(q session.Query, out *session.Outcome) {
	switch {
	case len(out.Calls) == 0 && t.plain > 0:
		t.other++ // the registration excludes the derived object, so the webhook does not change it
	case len(out.Calls) == 0 || out.Fault != "":
	case q.Object == t.memo.object && q.Raw == nil && !q.DryRun && q.Operation == t.Operation:
		t.plain++
	default:
		t.other++
	}
}
