// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// A Searched describes a search for the trigger of a webhook.
type Searched struct {
	Objects    int      // number of objects that were tried
	Keys       []string // keys of labels and annotations that something names
	Values     []string // values with which the keys were tried
	Words      int      // number of other texts that were tried as names, images and variables
	Namespaces []string
	Spent      bool // the search reached its limit of calls
}

const (
	// probes is the number of generated objects that are tried before the search for a trigger.
	probes = 8
	// callsToSearch and callsToSearchByURL are the maximum numbers of calls to search for the trigger of a webhook.
	callsToSearch, callsToSearchByURL = 400, 250
	mostSingleKeys                    = 30 // keys that are tried one by one
	mostValuesOfKey                   = 12 // keys that are tried with each value
	keysAtOnce                        = 8
	usualBases                        = 4  // objects with which less likely keys and values are tried
	mostFieldWords                    = 30 // words that are tried as values of fields
	mostFields                        = 40 // fields in which they are tried
	// guessesAtOnce is the number of guessed keys in one object. The API server limits the size of all annotations.
	guessesAtOnce = 250
	// mostFollowed is the maximum number of denials and warnings in a row whose hints are tried.
	mostFollowed = 3
)

// learnFromGenerated generates objects and finds the trigger of the first one that the webhook changes. If it changes
// none, search looks for a trigger. Later objects get the trigger only if fewer than two thirds of the objects have it.
func (r *Run) learnFromGenerated() {
	// The first object is also the first one of the run. If the webhook hangs, the run need not wait for this object
	// again.
	random := rand.New(rand.NewPCG(uint64(r.Seed), 0))
	var acting any
	n, acted, updated := 0, 0, false
	for i := range probes {
		if r.Over() || r.hung {
			return
		}
		doc := r.inputs.object(random, i)
		switch r.ask(doc) {
		case trigger.Invalid:
			continue
		case trigger.Acts:
			if acted++; acting == nil {
				acting = doc
			}
		case trigger.Idle:
			updated = updated || r.actsOnUpdate(doc)
		}
		n++
	}
	switch {
	case acting != nil:
		t, _ := r.triggerOf(acting, callsToLearn)
		if r.Triggers = append(r.Triggers, *t); 3*acted < 2*n {
			r.inputs.found = t
		}
	case n > 0 && !updated:
		r.search()
	}
}

// A finder tries objects until the webhook changes one.
type finder struct {
	*Run
	hints    *trigger.Hints
	pairs    []trigger.Pair // of the hints, one for each key, without those that switch a webhook off
	left     int
	followed int // number of messages whose hints are being tried
	acts     any // the object that the webhook changed
	tried    *Searched
}

// search tries objects with labels, annotations and names that may switch the webhook on. It tries many keys in one
// object. If the webhook changes the object, triggerOf finds out which of the keys it needs.
func (r *Run) search() {
	h := r.hintsOf()
	f := &finder{Run: r, hints: h, left: callsToSearch, tried: &Searched{Keys: slices.Clone(h.Keys), Values: valuesOf(h), Words: len(h.Words)}}
	for _, w := range r.Webhooks {
		if !w.InProcess {
			f.left = callsToSearchByURL
		}
	}
	for _, p := range h.Pairs {
		if !trigger.IsOff(p.Key) && p.Value != "" && !slices.ContainsFunc(f.pairs, func(q trigger.Pair) bool { return q.Key == p.Key }) {
			f.pairs = append(f.pairs, p)
		}
	}
	r.Searched = f.tried
	if f.from(f.bases()); f.acts != nil {
		t, _ := r.triggerOf(f.acts, callsToLearnMany)
		r.Triggers = append(r.Triggers, *t)
		r.inputs.found = t
		return
	}
	f.tried.Spent = f.left <= 0
}

func put(doc any, p tree.Path, value any) any {
	if next, ok := tree.Put(doc, p, value); ok {
		return next
	}
	return doc
}

// try sends a document to the webhook. It reports whether the search must end: the webhook changes the document, hangs,
// or no calls are left.
func (f *finder) try(doc any) (done bool) {
	if f.left <= 0 || f.hung || f.Over() {
		return true
	}
	said := &f.messages.hints
	keys, values := len(said.Keys), len(said.Values)
	switch f.ask(doc) {
	case trigger.Acts:
		f.acts = doc
	case trigger.Invalid:
		return false
	}
	f.left--
	f.tried.Objects++
	return f.acts != nil || f.follow(doc, said.Keys[keys:], said.Values[values:])
}

// follow tries the keys and values that the answer to a document has named for the first time, in addition to what the
// document has.
func (f *finder) follow(doc any, keys, values []string) (done bool) {
	if f.followed >= mostFollowed || len(keys)+len(values) == 0 {
		return false
	}
	f.followed++
	defer func() { f.followed-- }()
	f.tried.Keys = append(f.tried.Keys, keys...)
	for _, p := range f.messages.hints.Pairs {
		if slices.Contains(keys, p.Key) && f.try(annotated(doc, []string{p.Key}, p.Value)) {
			return true
		}
	}
	if len(keys) == 0 {
		keys = notesOf(doc)
	}
	for _, value := range append(slices.Clone(values), f.tried.Values[:2]...) {
		if f.try(annotated(doc, keys, value)) {
			return true
		}
	}
	return false
}

// notesOf returns the keys of the labels and annotations of a document.
func notesOf(doc any) (keys []string) {
	for _, name := range []string{"annotations", "labels"} {
		value, _ := tree.Get(doc, edits.Metadata.Member(name))
		notes, _ := value.(map[string]any)
		for key := range notes {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// from tries variants of documents, the likeliest first, until the webhook changes one.
func (f *finder) from(bases []any) {
	_ = len(bases) == 0 || f.tryEach(bases) || f.tryPairs(bases) || f.tryKeys(bases) || f.tryFields(few(bases, 2)) || f.tryGuesses(bases) ||
		f.tryGroups(few(bases, usualBases)) || f.tryNamespaces(bases[0]) || f.tryNames(bases[0]) || f.trySingleKeys(few(bases, usualBases))
}

func (f *finder) tryEach(docs []any) (done bool) { return slices.ContainsFunc(docs, f.try) }

// with returns the document with all pairs of the hints.
func (f *finder) with(doc any) any {
	for _, p := range f.pairs {
		doc = annotated(doc, []string{p.Key}, p.Value)
	}
	return doc
}

// tryPairs tries the pairs of the hints: first all at once, then all but one, and then each one alone.
func (f *finder) tryPairs(bases []any) (done bool) {
	if len(f.pairs) == 0 {
		return false
	}
	for _, base := range bases {
		if f.try(f.with(base)) {
			return true
		}
	}
	all := f.pairs
	defer func() { f.pairs = all }()
	for _, base := range few(bases, 2) {
		for i := range few(all, mostValuesOfKey) {
			f.pairs = slices.Delete(slices.Clone(all), i, i+1)
			if len(all) > 1 && f.try(f.with(base)) {
				return true
			}
		}
	}
	for _, p := range few(f.hints.Pairs, mostSingleKeys) {
		if f.try(annotated(bases[0], []string{p.Key}, p.Value)) {
			return true
		}
	}
	return false
}

// tryKeys tries all keys and words at once with each value, together with the pairs of the hints.
func (f *finder) tryKeys(bases []any) (done bool) {
	keys := slices.DeleteFunc(slices.Concat(f.hints.Keys, f.hints.Words), func(key string) bool { return trigger.IsOff(key) || !trigger.IsKey(key) })
	if len(keys) == 0 {
		return false
	}
	for i, value := range f.tried.Values {
		on := bases
		if i > 1 {
			on = few(bases, usualBases)
		}
		for _, base := range on {
			if f.try(f.with(annotated(base, absent(base, keys), value))) {
				return true
			}
		}
	}
	return false
}

// tryFields tries the words of the hints as values of the fields of documents, such as the type of a Service. Each object
// has one word in all fields that permit it, and all keys of the hints.
func (f *finder) tryFields(bases []any) (done bool) {
	for _, base := range bases {
		x, ok := f.Valid(base) // with the fields that have defaults
		if !ok {
			continue
		}
		var fields []tree.Path
		tree.Leaves(x.Doc, func(p tree.Path, leaf any) {
			if _, isText := leaf.(string); isText && len(p) > 1 && p[0].Name != "metadata" {
				fields = append(fields, slices.Clone(p))
			}
		})
		for _, word := range few(f.hints.Words, mostFieldWords) {
			doc, fits := x.Doc, false
			for _, p := range few(fields, mostFields) {
				if next, ok := tree.Put(doc, p, word); ok && f.inputs.valid(next) {
					doc, fits = next, true
				}
			}
			if fits && f.try(f.with(annotated(doc, absent(doc, f.hints.Keys), "true"))) {
				return true
			}
		}
	}
	return false
}

// tryGuesses tries usual keys, many at once.
func (f *finder) tryGuesses(bases []any) (done bool) {
	guesses := f.hints.Guesses()
	f.tried.Keys = append(f.tried.Keys, guesses...)
	values := slices.Concat(trigger.GuessedValues, f.hints.NameWords())
	for i, value := range values {
		on := few(bases, []int{mostBases, usualBases, 2}[min(i, 2)])
		for keys := range slices.Chunk(guesses, guessesAtOnce) {
			for _, base := range on {
				if f.try(f.with(annotated(base, absent(base, keys), value))) {
					return true
				}
			}
		}
	}
	return false
}

// tryGroups tries the keys of the hints in groups, because one key may switch the webhook off.
func (f *finder) tryGroups(bases []any) (done bool) {
	for keys := range slices.Chunk(f.hints.Keys, keysAtOnce) {
		for _, value := range f.tried.Values[:2] {
			for _, base := range bases {
				if f.try(annotated(base, keys, value)) {
					return true
				}
			}
		}
	}
	return false
}

// trySingleKeys tries each key alone.
func (f *finder) trySingleKeys(bases []any) (done bool) {
	for _, key := range few(f.hints.Keys, mostSingleKeys) {
		for _, value := range []string{"true", "enabled", "false"} {
			for _, base := range bases {
				if f.try(annotated(base, []string{key}, value)) {
					return true
				}
			}
		}
	}
	for _, key := range few(f.hints.Keys, mostValuesOfKey) {
		for _, value := range f.tried.Values {
			if f.try(annotated(bases[0], []string{key}, value)) {
				return true
			}
		}
	}
	return false
}

// tryNamespaces tries the namespaces in Options.Namespaces.
func (f *finder) tryNamespaces(base any) (done bool) {
	if !f.Kind.Namespaced {
		return false
	}
	for _, name := range few(f.Namespaces.Names(), mostValuesOfKey) {
		f.tried.Namespaces = append(f.tried.Namespaces, name)
		there := put(base, edits.Metadata.Member("namespace"), name)
		if f.try(there) || f.try(annotated(there, f.hints.Keys, "true")) {
			return true
		}
	}
	return false
}

// tryNames tries the words of the hints as names of the object.
func (f *finder) tryNames(base any) (done bool) {
	for _, word := range few(f.hints.Words, mostValuesOfKey) {
		if len(validation.IsDNS1123Subdomain(word)) == 0 && f.try(put(base, edits.Metadata.Member("name"), word)) {
			return true
		}
	}
	return false
}

// valuesOf returns the values with which keys are tried: usual ones, and those of the hints.
func valuesOf(h *trigger.Hints) []string {
	values := []string{"true", "enabled"}
	for _, v := range slices.Concat(h.Values, trigger.GuessedValues, []string{"8080", "1h", "256Mi", "{}", "[]"}) {
		if !slices.Contains(values, v) && v != "false" {
			values = append(values, v)
		}
	}
	return values
}
