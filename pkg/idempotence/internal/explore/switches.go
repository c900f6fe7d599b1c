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
	// mostSwitches is the maximum number of switches that are tested.
	mostSwitches = 6
	mostOfKey    = 2 // switches with the same key
	// callsToSwitch is the maximum number of calls to find the switches.
	callsToSwitch = 120
)

// switchValues are the values with which the keys of switches are tried, in addition to those in the hints.
var switchValues = []string{"true", "false", "none", "2"}

// A switchFinder finds switches. It sends many keys at once, and halves the list if the webhook then acts differently.
type switchFinder struct {
	*Run
	base    any // an object that the webhook changes, with foreign labels and annotations
	left    int
	values  bool     // the values that the webhook writes count as a part of its effect
	known   []string // the effects that were seen
	found   []Switch
	failing []Switch // with these, the webhook gives no valid result
}

// foreign are the keys of labels and annotations of no webhook. An object with the first one has all maps to which a
// webhook adds labels or annotations, so the second one shows whether the webhook reads all keys.
var foreign = []string{"first.example.org/unread", "second.example.org/unread"}

// trySwitches finds the switches of the webhook and checks the laws on an object with each of them.
func (r *Run) trySwitches(random *rand.Rand, before []any) {
	if !r.uses(Triggers) || !r.uses(Switches) || r.Impure || r.hung || r.Over() {
		return
	}
	base, ok := r.actingObject(random)
	if !ok {
		return
	}
	f := &switchFinder{Run: r, base: annotated(base, foreign[:1], "true"), left: callsToSwitch}
	f.findAll(r.hintsOf())
	r.Switches = f.found
	defer func() { r.inputs.switched = nil }()
	for _, s := range f.failing {
		doc := annotated(base, []string{s.Key}, s.Value)
		for _, law := range []laws.Law{laws.L2, laws.L1} {
			r.try(&laws.Case{Law: law, Object: doc})
		}
	}
	for _, s := range f.found {
		if r.Over() {
			return
		}
		r.trySwitch(random, base, s, before)
	}
}

// trySwitch checks the laws on an object with a switch. base is the object without it. It also checks L6 with a later change
// that adds the switch, and with one that gives it another value.
func (r *Run) trySwitch(random *rand.Rand, base any, s Switch, before []any) {
	r.object++
	doc := annotated(base, []string{s.Key}, s.Value)
	x, ok := r.Valid(doc)
	if !ok {
		return
	}
	r.inputs.switched = doc
	if out := r.CountObject(x); out.OK() {
		r.Tally.Called++
		r.one(random, seldom+1, x, out, before)
		r.tryTexts(seldom+1, x, out.After)
		r.manifestAgain(doc)
		r.replaced(doc)
		r.tryAfterCreation(random, 0, x, out.After)
	}
	if !r.uses(LaterChanges) {
		return
	}
	for _, c := range edits.Single(tree.Changes(base, doc)) {
		if !edits.IsNote(c.Path) {
			continue
		}
		set, changed := edits.Edit{What: edits.Put, Path: c.Path, Value: s.Value}, edits.Edit{What: edits.Put, Path: c.Path, Value: s.Value + "2"}
		r.try(&laws.Case{Law: laws.L6, Object: base, Variant: laws.ChangedValue, Edits: []edits.Edit{set}})
		r.try(&laws.Case{Law: laws.L6, Object: doc, Variant: laws.ChangedValue, Edits: []edits.Edit{changed}})
	}
}

// actingObject returns the first sample that the webhook changes. Without samples, it returns a generated object. ok is false
// if the webhook does not change the object.
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
	plain, other := f.send(nil), f.send([]Switch{{Key: foreign[1], Value: "true"}})
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
	pairs := slices.DeleteFunc(slices.Clone(h.Pairs), func(s Switch) bool { return !slices.Contains(keys, s.Key) })
	for len(pairs) > 0 { // an object has only one value for each key
		var once, more []Switch
		for _, s := range pairs {
			if slices.ContainsFunc(once, func(o Switch) bool { return o.Key == s.Key }) {
				more = append(more, s)
				continue
			}
			once = append(once, s)
		}
		f.find(once)
		pairs = more
	}
	for _, value := range slices.Concat(switchValues, few(h.Values, mostOwnValues)) {
		var all []Switch
		for _, key := range keys {
			all = append(all, Switch{Key: key, Value: value})
		}
		f.find(all)
	}
}

// find adds the switches in the list that have a new effect to f.found.
func (f *switchFinder) find(list []Switch) {
	list = slices.DeleteFunc(list, func(s Switch) bool { return f.ofKey(s.Key) >= mostOfKey })
	if len(list) == 0 || f.left <= 0 || len(f.found) >= mostSwitches || f.Over() || f.hung {
		return
	}
	if known, rest := f.divided(list); len(list) > 1 && len(known) > 0 {
		f.find(rest)
		for _, s := range known {
			f.find([]Switch{s})
		}
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
	case len(f.failing) < mostSwitches:
		f.failing = append(f.failing, list[0])
	}
}

// divided returns the switches whose keys have a known effect, and the rest. The effect may hide those of other keys, such
// as that of a key that makes the webhook skip the object.
func (f *switchFinder) divided(list []Switch) (known, rest []Switch) {
	for _, s := range list {
		if f.ofKey(s.Key) > 0 {
			known = append(known, s)
		} else {
			rest = append(rest, s)
		}
	}
	return known, rest
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

// A callResult is an object and the webhooks' result for it.
type callResult struct {
	x      *objects.Object
	result *session.Outcome
}

// send sends the object with some switches to the webhooks. It returns nil if the API server rejects the object or the
// result, or if a webhook denies the object.
func (f *switchFinder) send(list []Switch) *callResult {
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
	return &callResult{x, out}
}

// effectOf returns the webhooks' changes as a text: equal texts are equal changes. It leaves out the values unless f.values
// is set.
func (f *switchFinder) effectOf(s *callResult) string {
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
