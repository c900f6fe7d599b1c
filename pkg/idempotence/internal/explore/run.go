// SPDX-License-Identifier: Apache-2.0

// Package explore generates cases for the laws from samples and schemas, checks them, and counts the results.
package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/shrink"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Settings configure a run.
type Settings struct {
	Objects   int // number of objects to generate
	Seed      int64
	Without   []laws.Law      // laws that are not checked
	Unused    map[Family]bool // families that a test disables
	FirstKind bool            // no other kind was explored before
	// Found is called with each finding, after it was shrunk.
	Found func(*laws.Finding)
	// Log is called with lines about the progress of a long run. It may be nil.
	Log func(text string)
}

// A Run generates objects of one kind and checks the laws on them.
type Run struct {
	*laws.Checker
	Settings
	Tally Tally
	// Triggers are the triggers that were found, and Searched describes the search if there was one.
	Triggers []Trigger
	Searched *Searched
	// Switches are the labels and annotations that no sample has, and that change what the webhook does.
	Switches []Switch
	// EndedAt is the number of objects after which the run ended because nothing new was seen, or 0.
	EndedAt int
	// Refused has the reasons why the API server rejects samples, by the number of the sample, counted from 1.
	Refused map[int]string

	inputs   *Inputs
	messages messages
	texts    *[]string // cached by ownTexts
	ownKeys  []string  // keys in the source of the webhooks; ownTexts sets them
	hung     bool      // the webhook did not respond during the search for its trigger
	object   int       // number of the current object, counted from 1; 0 for a stored case
	varied   int       // number of findings whose requests were repeated
	waited   int       // number of findings whose requests were repeated in the next second
	filled   int       // number of invalid objects that were sent to learn what the webhook fills
	repeated int       // number of findings about L3 that repeat another and were passed to SetAside
}

// New returns a run that sends its requests through s. It sets options.Inputs, and disables the checks of the families
// in settings.Unused.
func New(s *session.Session, options laws.Options, inputs *Inputs, settings Settings) *Run {
	options.Inputs = inputs
	options.OldInstancesOnly = settings.Unused[FreshInstances]
	options.FirstVersionOnly = settings.Unused[ReviewVersions]
	options.UsualEncodingOnly = settings.Unused[OtherEncodings]
	inputs.restrict(settings.Unused)
	if s.Kind.GoType == nil {
		s.LearnTemplates(inputs.samples)
	}
	r := &Run{Checker: laws.New(s, options), Settings: settings, Tally: newTally(), inputs: inputs}
	inputs.seed = settings.Seed
	inputs.valid = func(doc any) bool { _, ok := r.Valid(doc); return ok }
	return r
}

// Object returns the number of the current object, counted from 1. It is 0 for a stored case.
func (r *Run) Object() int { return r.object }

// uses reports whether a family is enabled.
func (r *Run) uses(f Family) bool { return !r.Unused[f] }

// maxFindings is the number of violations of a law after which its further cases are skipped. The violations most
// likely have different causes, because repeats do not count.
const maxFindings = 4

// callsToShrink is the number of calls after which no smaller cases are checked for a finding. A check of L3 that passes
// makes more than 100 calls.
const callsToShrink = 4000

// Advice about a law is dropped once the law has maxFindings+maxAdvice findings.
const maxAdvice = 3

// try checks a case. If a law fails in a way that is not known yet, try shrinks the case and passes the finding to
// Found.
func (r *Run) try(c *laws.Case) {
	if r.Over() || slices.Contains(r.Without, c.Law) || r.Tally.violations(c.Law) >= maxFindings {
		return
	}
	f := r.Judge(r.Try(c))
	if f == nil {
		return
	}
	places := r.PlacesOf(f)
	if r.Tally.knows(f, places...) {
		r.setAsideToo(f)
		return
	}
	if r.repeatsRefusal(f) {
		return
	}
	if f = r.WithoutDrawn(f, false); f == nil || r.Tally.knows(f, places...) {
		return
	}
	late := slices.ContainsFunc(f.Outcomes, (*session.Outcome).Late)
	most := r.Calls() + callsToShrink
	f = shrink.Smallest(f, func(c *laws.Case) *laws.Finding {
		if late || r.Over() || r.Calls() > most { // each call that gets no response lasts until the timeout
			return nil
		}
		if r.inputs.loses(f.Case.Object, c.Object) || r.isDegenerate(c.Object) && !r.isDegenerate(f.Case.Object) {
			return nil
		}
		smaller, _ := r.Check(c) // Check, unlike Try, does not count the case
		return r.Judge(smaller)
	})
	smaller := r.PlacesOf(f)
	if r.Tally.knows(f, smaller...) { // the smaller case fails in another way
		r.setAsideToo(f)
		return
	}
	places = append(places, smaller...)
	if c.Law == laws.L3 && !f.Advice {
		r.Impure = !r.SetAside(f) || r.Impure
	}
	if f.Advice && len(r.Tally.causes[c.Law]) >= maxFindings+maxAdvice {
		return
	}
	r.Tally.Add(f, places...)
	r.NoOpKnown = r.NoOpKnown || f.Mode == laws.NoOpPatch
	r.Found(f)
}

// repeatsRefusal reports whether a finding has the cause of a violation of L1: the API server rejects the result for the
// same reasons. If other parties change the object between two calls, the changes may be the cause. Then the result for
// the object alone must violate L1, too.
func (r *Run) repeatsRefusal(f *laws.Finding) bool {
	if !r.Tally.knowsRefusals(f) {
		return false
	}
	switch f.Case.Law {
	case laws.L4a, laws.L4b, laws.L11, laws.L12:
		alone, _ := r.Check(&laws.Case{Law: laws.L1, Object: f.Case.Object})
		return alone != nil
	}
	return true
}

// PlacesOf returns the fields that a finding is about, such as "spec.containers.env", without the keys of elements. It
// returns none if they are not known.
func (r *Run) PlacesOf(f *laws.Finding) (places []string) {
	add := func(p tree.Path) {
		if place := placeOf(p); place != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	changes, _ := r.Differences(f)
	for _, c := range changes {
		add(c.Path)
	}
	if len(changes) > 0 {
		return places
	}
	for _, pointer := range objects.ProblemPaths(f.Summary) {
		var path tree.Path
		for name := range strings.SplitSeq(strings.Trim(pointer, "/"), "/") {
			path = append(path, tree.Step{Name: name, Element: strings.Trim(name, "0123456789") == ""})
		}
		add(path)
	}
	return places
}

// placeOf returns the field to which a path leads, such as "spec.containers.env", without the keys of elements. The
// name has at most three parts. For a field of a Pod template, it begins inside the template.
func placeOf(p tree.Path) string {
	var names []string
	for _, step := range p {
		switch {
		case step.Element:
		case step.Name == "template" && len(names) > 0:
			names = nil
		default:
			names = append(names, step.Name)
		}
	}
	most := 3
	if len(names) > 0 && names[0] == "metadata" {
		most = 2
	}
	return strings.Join(names[:min(len(names), most)], ".")
}

// Try checks a case, counts it in the tally, and returns the finding or nil.
func (r *Run) Try(c *laws.Case) *laws.Finding {
	r.Tally.Tried[c.Law]++
	f, decided := r.Check(c)
	if decided {
		r.Tally.Decided[c.Law]++
	}
	return f
}

// CountObject sends x to the webhooks and returns their result. It counts both in the tally.
func (r *Run) CountObject(x *objects.Object) *session.Outcome {
	r.Tally.Objects++
	out := r.F(r.Fresh(), session.Query{Object: x})
	if out.OK() {
		r.Tally.Allowed++
		if !tree.Equal(out.After.Doc, x.Doc) {
			r.Tally.Changed++
		}
	}
	return out
}

// noteExclusion records why the webhook was not called for x, if x is the first object without a call.
func (r *Run) noteExclusion(x *objects.Object) {
	if r.Tally.SkipReasons == nil {
		r.Tally.SkipReasons = r.ExcludedBy(x)
	}
}

// progressEvery is the number of objects between two progress lines.
const progressEvery = 100

// logProgress logs the progress of the run after the i-th object.
func (r *Run) logProgress(i int) {
	if done := i + 1; done%progressEvery == 0 && r.Log != nil {
		r.Log(fmt.Sprintf("%s: %d of %d objects, %s, %s", r.Kind.Name(), done, r.Objects,
			textutil.Count(r.Checks, "check"), textutil.Count(r.Calls(), "call")))
	}
}
