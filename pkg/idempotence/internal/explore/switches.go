// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// A Switch is a label or annotation that no sample has, with a value, and that changes what the webhook does. For
// example, it may select another mode, or one more sidecar.
type Switch = trigger.Pair

const (
	// mostSwitches is the maximum number of switches whose effects are tested.
	mostSwitches = 6
	mostOfKey    = 2 // switches with the same key
	// callsToSwitch is the maximum number of calls to find the switches.
	callsToSwitch = 120
)

// switchValues are the values with which the keys of switches are tried, in addition to those in the hints.
var switchValues = []string{"true", "false", "none", "2"}

// A switchFinder finds switches. It tries many keys at once, and divides them if the webhook then acts differently.
type switchFinder struct {
	*Run
	base   any // an object that the webhook changes
	left   int
	values bool     // the values that the webhook writes count as a part of its effect
	known  []string // the effects that were seen
	found  []Switch
}

// trySwitches finds the switches of the webhook and checks the laws on an object with each of them.
func (r *Run) trySwitches(random *rand.Rand, before []any) {
	if !r.uses(Triggers) || !r.uses(Switches) || r.Impure || r.hung || r.Over() {
		return
	}
	base, ok := r.actingObject(random)
	if !ok {
		return
	}
	f := &switchFinder{Run: r, base: base, left: callsToSwitch}
	f.findAll(r.hintsOf())
	r.Switches = f.found
	for _, s := range f.found {
		if r.Over() {
			return
		}
		r.object++
		doc := annotated(f.base, []string{s.Key}, s.Value)
		x, ok := r.Valid(doc)
		if !ok {
			continue
		}
		if out := r.CountObject(x); out.OK() {
			r.Tally.Called++
			r.one(random, seldom+1, x, out, before)
			r.replaced(doc)
			r.tryAfterCreation(random, 0, x, out.After)
		}
		later := edits.Edit{What: edits.Put, Path: edits.Metadata.Member("annotations").Member(s.Key), Value: s.Value}
		if r.uses(LaterChanges) {
			r.try(&laws.Case{Law: laws.L6, Object: f.base, Variant: laws.ChangedValue, Edits: []edits.Edit{later}})
		}
	}
}

// actingObject returns the first sample that the webhook changes. Without samples, it returns a generated object.
func (r *Run) actingObject(random *rand.Rand) (doc any, ok bool) {
	if len(r.inputs.samples) == 0 {
		doc = r.inputs.object(random, 0)
		return doc, r.ask(doc) == trigger.Acts
	}
	at := slices.IndexFunc(r.inputs.triggers, func(t *Trigger) bool { return t != nil })
	if at < 0 {
		return nil, false
	}
	return r.inputs.samples[at], true
}

// findAll tries the keys of the hints that the sample lacks and that the webhook does not write.
func (f *switchFinder) findAll(h *trigger.Hints) {
	plain, other := f.send(nil), f.send([]Switch{{Key: edits.TouchedAnnotation.Last(), Value: "true"}})
	if plain == nil || other == nil {
		return
	}
	if f.values = true; f.effectOf(plain) != f.effectOf(other) { // some values are random
		if f.values = false; f.effectOf(plain) != f.effectOf(other) {
			return // it copies or counts all annotations
		}
	}
	f.known = []string{f.effectOf(plain)}
	keys := absent(plain.result.After.Doc, absent(f.base, h.Keys))
	f.find(slices.DeleteFunc(slices.Clone(h.Pairs), func(s Switch) bool { return !slices.Contains(keys, s.Key) }))
	for _, value := range slices.Concat(switchValues, few(h.Values, mostOwnValues)) {
		var all []Switch
		for _, key := range keys {
			all = append(all, Switch{Key: key, Value: value})
		}
		f.find(all)
	}
}

// find adds to the found switches those in the list with which the webhook does something new.
func (f *switchFinder) find(list []Switch) {
	list = slices.DeleteFunc(list, func(s Switch) bool { return f.ofKey(s.Key) >= mostOfKey })
	if len(list) == 0 || f.left <= 0 || len(f.found) >= mostSwitches || f.Over() || f.hung {
		return
	}
	with := f.send(list)
	if with != nil && slices.Contains(f.known, f.effectOf(with)) {
		return
	}
	switch {
	case len(list) > 1:
		half := len(list) / 2
		f.find(slices.Clone(list[:half]))
		f.find(slices.Clone(list[half:]))
	case with != nil:
		f.known = append(f.known, f.effectOf(with))
		f.found = append(f.found, list[0])
	}
}

// ofKey returns the number of switches with a key that were found.
func (f *switchFinder) ofKey(key string) (n int) {
	for _, s := range f.found {
		if s.Key == key {
			n++
		}
	}
	return n
}

// A sent is an object with the webhooks' result for it.
type sent struct {
	x      *objects.Object
	result *session.Outcome
}

// send sends the object with some switches to the webhooks. It returns nil if the API server rejects the object or the
// result, or if a webhook denies the object.
func (f *switchFinder) send(list []Switch) *sent {
	doc := f.base
	for _, s := range list {
		doc = annotated(doc, []string{s.Key}, s.Value)
	}
	x, ok := f.Valid(doc)
	if !ok {
		return nil
	}
	f.left--
	out := f.Request(f.NewInstances(), session.Query{Object: x})
	if f.hung = out.Late(); !out.OK() || len(f.Kind.Problems(out.After)) > 0 {
		return nil
	}
	return &sent{x, out}
}

// effectOf returns a text that is the same for objects to which the webhooks do the same.
func (f *switchFinder) effectOf(s *sent) string {
	var text strings.Builder
	for _, c := range tree.Changes(s.x.Doc, s.result.After.Doc) {
		fmt.Fprintf(&text, "%s %s", c.Kind, c.Path)
		if f.values {
			text.Write(tree.Encode(c.New))
		}
		text.WriteByte('\n')
	}
	return text.String()
}
