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

	// A test disables parts of laws and requires that a known bug is then missed.
	OldInstancesOnly, FirstVersionOnly, UsualEncodingOnly bool
}

// Inputs tells what the user has given.
type Inputs interface {
	// Given reports whether a value comes from a sample or resembles a sample's, so that the webhook may be meant to change it.
	Given(p tree.Path) bool
	// Same reports whether two list elements have equal keys by the schema.
	Same(list tree.Path, a, b any) bool
	// IsMap reports whether an object is a map by the schema, so that its members can have any name.
	IsMap(p tree.Path) bool
}

// A Checker checks cases of laws with objects of one kind.
type Checker struct {
	*session.Session
	Options
	Impure bool // equal requests had different results
	Checks int  // number of checks made
	// Unshared makes each law use fresh instances.
	Unshared bool

	needed  map[int]bool // exceptions that covered something
	law     Law          // of the current case
	memo    memo
	updated updated
	reuse   reuse
	clock   stopwatch
	shared  session.Instances // for laws that any instance can decide
	// plain and other count the requests of the current case on which the webhook decided: for x itself, and for
	// objects that the law derived from x.
	plain, other int
}

// New returns a checker.
func New(s *session.Session, options Options) *Checker {
	return &Checker{Session: s, Options: options, needed: map[int]bool{}}
}

// Check checks a case. It reports whether the case decided anything. It ignores a result that comes after the run has ended.
func (k *Checker) Check(c *Case) (f *Finding, decided bool) {
	k.Checks++
	if k.Step != nil {
		k.Step(c.Law)
	}
	k.reuse.keep()
	k.law, k.plain, k.other = c.Law, 0, 0
	defer func() { k.law = "" }()
	f = k.checkOnce(c)
	if f != nil && !k.Unshared { // again on fresh instances, as a replay of the case does
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

// A memo caches the results for the object of the current cases.
type memo struct {
	doc    any
	object *objects.Object
	first  *session.Outcome // of the first call of a fresh instance
}

// ObjectOf returns x of a case, or nil if it is not valid.
func (k *Checker) ObjectOf(c *Case) (*objects.Object, bool) {
	if k.memo.object != nil && sameMap(c.Object, k.memo.doc) {
		return k.memo.object, true
	}
	x, ok := k.Valid(c.Object)
	if ok {
		k.memo = memo{doc: c.Object, object: x}
	}
	return x, ok
}

// first returns F(x) of a fresh instance. L1 to L3 call the webhook anew; other laws use the cached result.
func (k *Checker) first(x *objects.Object) *session.Outcome {
	if k.memo.object != x {
		return k.F(k.Fresh(), session.Query{Object: x})
	}
	if k.memo.first == nil {
		k.memo.first = k.F(k.Fresh(), session.Query{Object: x})
	}
	return k.memo.first
}

// onAnyInstance lists the laws that pass or fail in single calls. A violation on a used instance must also appear on a
// fresh one.
var onAnyInstance = []Law{L2, L8, L9, L10}

// Fresh returns instances without earlier calls. Laws that are not about memory get used instances, because creating
// them may be slow.
func (k *Checker) Fresh() session.Instances {
	if k.law != "" && !slices.Contains(onAnyInstance, k.law) || k.Unshared {
		return k.NewInstances()
	}
	if k.shared == nil {
		k.shared = k.NewInstances()
	}
	return slices.Clone(k.shared)
}

// F sends a request, or returns the result of an equal one where the law allows that.
func (k *Checker) F(s session.Instances, q session.Query) *session.Outcome {
	if k.Over() {
		return k.Request(s, q)
	}
	if q.Operation == "" {
		q.Operation = k.Operation
	}
	key, may := k.reusable(q)
	out := k.reuse.earlier[key]
	if !may || out == nil {
		out = k.Request(s, q)
	}
	if may {
		k.reuse.now[key] = out
	}
	k.count(q, out)
	return out
}

// count counts a request on which the webhook decided.
func (k *Checker) count(q session.Query, out *session.Outcome) {
	switch {
	case len(out.Calls) == 0 && k.plain > 0:
		k.other++ // the registration excludes the derived object, so the webhook does not change it
	case len(out.Calls) == 0 || out.Fault != "":
	case q.Object == k.memo.object && q.Raw == nil && !q.DryRun && q.Operation == k.Operation:
		k.plain++
	default:
		k.other++
	}
}
