// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/rand/v2"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// A Trigger has the parts of an object that make the webhook change it.
type Trigger struct {
	Sample   int // number of the sample, counted from 1; 0 if the object was generated
	Parts    []trigger.Part
	Complete bool // the limit of calls was not reached, so Parts has all parts

	free     []tree.Path // parts of the sample that the webhook does not need, outermost first
	blockers []tree.Path // parts that the sample lacks, and that keep the webhook from changing an object
	blocked  int         // number of calls of unblock that searched for blockers
}

const (
	// mostLearnt is the maximum number of samples whose triggers are searched for.
	mostLearnt = 8
	// callsToLearn is the maximum number of calls to find the trigger of a sample.
	callsToLearn = 60
	// callsToLearnMany is the maximum number of calls to find the trigger of an object with many labels and annotations.
	callsToLearnMany = 240
	// mostBlocked is the maximum number of objects, generated from one sample, whose blockers are searched for.
	mostBlocked = 4
	// callsToUnblock is the maximum number of calls to find the blockers of one object.
	callsToUnblock = 16
)

// learn finds the triggers of the samples. If the webhook changes no sample, learn generates objects and finds the
// trigger of one that the webhook changes.
func (r *Run) learn() {
	if !r.uses(Triggers) {
		return
	}
	r.inputs.triggers = make([]*Trigger, len(r.inputs.samples))
	acts := false
	for i, sample := range r.inputs.samples[:min(len(r.inputs.samples), mostLearnt)] {
		if _, ok := r.Valid(sample); !ok {
			r.refuse(i+1, sample)
			continue
		}
		switch {
		case r.Over() || r.hung:
			return
		case r.ask(sample) == trigger.Acts:
			acts = true
			t, smallest := r.triggerOf(sample, callsToLearn)
			t.Sample, t.free = i+1, freeParts(smallest, sample)
			r.inputs.triggers[i] = t
			r.Triggers = append(r.Triggers, *t)
		case r.actsOnUpdate(sample):
			acts = true
		}
	}
	if !acts && !r.hung {
		r.learnFromGenerated()
	}
}

// Learn finds the triggers as All does. It returns the trigger that was found without samples, or nil.
func (r *Run) Learn() *Trigger {
	r.learn()
	return r.inputs.found
}

// SwitchOn gives most generated objects the parts of a trigger. A nil trigger has no effect.
func (r *Run) SwitchOn(t *Trigger) { r.inputs.found = t }

// refuse records why the API server rejects a sample.
func (r *Run) refuse(number int, sample any) {
	if r.Refused == nil {
		r.Refused = map[int]string{}
	}
	r.Refused[number] = r.RefusalOf(sample)
}

// triggerOf finds the trigger of an object that the webhook changes. It also returns the object without the parts that
// the webhook does not need. It makes at most most calls.
func (r *Run) triggerOf(doc any, most int) (t *Trigger, smallest any) {
	t = &Trigger{}
	smallest, t.Parts, t.Complete = trigger.Find(doc, most, r.ask)
	r.tryValues(t, doc)
	return t, smallest
}

// mostOwnValues is the maximum number of values from the webhook's source that tryValues tries for a part.
const mostOwnValues = 12

// tryValues tries the texts in the source of the webhook as values of the labels and annotations in a trigger. For
// example, a webhook may have a table of profiles, and act differently for each.
func (r *Run) tryValues(t *Trigger, doc any) {
	if !r.uses(OwnTexts) {
		return
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		if text, ok := p.Value.(string); !ok || text == "" || p.Need == trigger.Absent || !edits.IsNote(p.Path) {
			continue
		}
		for _, value := range few(r.ownTexts(), mostOwnValues) {
			if next, ok := tree.Put(doc, p.Path, value); ok && value != p.Value && r.ask(next) == trigger.Acts {
				p.Others = append(p.Others, value)
			}
		}
	}
}

// ask sends a document to new instances of the webhooks. It returns Invalid, without a call, once the webhook has hung.
func (r *Run) ask(doc any) trigger.Answer {
	x, ok := r.Valid(doc)
	if !ok || r.hung {
		return trigger.Invalid
	}
	out := r.Request(r.NewInstances(), session.Query{Object: x})
	r.hung = out.Late()
	return r.answerOf(x, out)
}

func (r *Run) answerOf(x *objects.Object, out *session.Outcome) trigger.Answer {
	if out.Message != "" || len(out.Warnings) > 0 || len(out.Patch) > 0 {
		r.messages.read(out)
	}
	if !out.OK() || tree.Equal(out.After.Doc, x.Doc) {
		return trigger.Idle
	}
	r.inputs.noteValues(x.Doc, out.After.Doc)
	return trigger.Acts
}

// actsOnUpdate reports whether a webhook that also handles CREATE changes an object in an update.
func (r *Run) actsOnUpdate(doc any) bool {
	if r.Operation != admissionv1.Create || !r.Handles(admissionv1.Update) {
		return false
	}
	old, ok := r.Valid(doc)
	if !ok {
		return false
	}
	leave, ok := r.EnterUpdate(r.Kind.AsSent(old.Doc, true))
	if !ok {
		return false
	}
	defer leave()
	next, ok := tree.Put(old.Doc, edits.TouchedAnnotation, "yes")
	return ok && r.ask(next) == trigger.Acts
}

// freeParts returns the outermost parts of a sample that smallest does not have.
func freeParts(smallest, sample any) (free []tree.Path) {
	for _, c := range tree.Changes(smallest, sample) {
		if c.Kind == tree.Added {
			free = append(free, c.Path)
		}
	}
	return free
}

// unblock finds out why the webhook does not change doc, the i-th object, which was generated from a sample that it
// changes. It records the parts of doc that keep the webhook from changing it. Later objects are generated without
// them.
func (r *Run) unblock(i int, doc any) {
	n := len(r.inputs.samples)
	if n == 0 || i < n || r.inputs.triggers == nil || r.inputs.isFull(i-n) {
		return
	}
	t, sample := r.inputs.triggers[i%n], r.inputs.samples[i%n]
	if t == nil || t.blocked >= mostBlocked || !t.holds(doc) {
		return
	}
	t.blocked++
	left := callsToUnblock
	for _, c := range tree.Changes(sample, doc) {
		if c.Kind != tree.Added || left <= 0 {
			continue
		}
		without, ok := tree.Remove(doc, c.Path)
		if left--; !ok || r.ask(without) != trigger.Acts {
			continue
		}
		with, ok := tree.Put(sample, c.Path, c.New)
		if left--; !ok {
			continue
		}
		t.blockers = append(t.blockers, c.Path)
		if r.ask(with) == trigger.Idle {
			part := trigger.Part{Path: c.Path, Need: trigger.Absent, Value: c.New}
			t.Parts = append(t.Parts, part)
			for at := range r.Triggers {
				if r.Triggers[at].Sample == t.Sample {
					r.Triggers[at].Parts = append(r.Triggers[at].Parts, part)
				}
			}
		}
	}
}

// alike returns the paths that are like p except for the list elements on the way: those of every element in doc.
func alike(doc any, p tree.Path) []tree.Path {
	found := []tree.Path{nil}
	for _, step := range p {
		var next []tree.Path
		for _, at := range found {
			if !step.Element {
				next = append(next, append(slices.Clone(at), step))
				continue
			}
			value, _ := tree.Get(doc, at)
			list, _ := value.([]any)
			seen := map[string]int{}
			for _, element := range list {
				key := tree.Identity(at, element)
				next = append(next, at.Element(key, seen[key]))
				seen[key]++
			}
		}
		found = next
	}
	return found
}

// holds reports whether a document has all parts of the trigger. It ignores parts that must be absent.
func (t *Trigger) holds(doc any) bool {
	for _, p := range t.Parts {
		value, ok := tree.Get(doc, p.Path)
		switch p.Need {
		case trigger.Absent:
		case trigger.Value:
			if !ok || !tree.Equal(value, p.Value) && !slices.Contains(p.Others, value) {
				return false
			}
		default:
			if !ok {
				return false
			}
		}
	}
	return true
}

const (
	// whole is the probability that vary keeps all parts of a sample that the webhook does not need.
	whole = 0.5
	// dropped is the probability that vary otherwise omits such a part.
	dropped = 0.3
	// untriggered is n if one of n objects lacks a part of the trigger.
	untriggered = 8
)

// vary returns the sample with other values where the trigger permits them, and without some of the parts that the
// webhook does not need. One of eight objects also lacks a part of the trigger. turn is the number of the object. valid
// reports whether the API server accepts a document.
func (t *Trigger) vary(random *rand.Rand, sample any, turn int, valid func(any) bool) any {
	doc := sample
	keep := func(next any, ok bool) {
		if ok && valid(next) {
			doc = next
		}
	}
	for _, p := range t.Parts {
		if len(p.Others) > 0 && random.IntN(2) == 0 {
			keep(tree.Put(doc, p.Path, p.Others[random.IntN(len(p.Others))]))
		}
	}
	if turn%untriggered == untriggered-1 && len(t.Parts) > 0 {
		keep(tree.Remove(doc, t.Parts[random.IntN(len(t.Parts))].Path))
	}
	if random.Float64() < whole {
		return doc
	}
	for _, p := range t.free {
		if random.Float64() < dropped {
			keep(tree.Remove(doc, p))
		}
	}
	return doc
}

// clear removes the blockers of the trigger from doc, which was generated from sample. It keeps blockers without which
// the API server would reject doc.
func (t *Trigger) clear(sample, doc any, valid func(any) bool) any {
	for _, blocker := range t.blockers {
		for _, p := range slices.Backward(alike(doc, blocker)) {
			if tree.Has(sample, p) {
				continue
			}
			if next, ok := tree.Remove(doc, p); ok && valid(next) {
				doc = next
			}
		}
	}
	return doc
}

// switchOn returns the document with the parts of the trigger. If the API server rejects the result, it returns doc.
func (t *Trigger) switchOn(doc any, valid func(any) bool) any {
	next := doc
	for _, p := range t.Parts {
		if p.Need == trigger.Absent {
			continue
		}
		if with, ok := tree.Put(next, inFirst(next, p.Path), p.Value); ok {
			next = with
		}
	}
	if valid(next) {
		return next
	}
	return doc
}

// inFirst returns p for a document that may lack list elements on the way. The first element of the list takes the
// place of a missing one.
func inFirst(doc any, p tree.Path) tree.Path {
	p = slices.Clone(p)
	for i, step := range p {
		if !step.Element || tree.Has(doc, p[:i+1]) {
			continue
		}
		value, _ := tree.Get(doc, p[:i])
		if list, _ := value.([]any); len(list) > 0 {
			p[i].Key, p[i].Nth = tree.Identity(p[:i], list[0]), 0
		}
	}
	return p
}
