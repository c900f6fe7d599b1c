// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/rand/v2"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// A Searched describes a search for the trigger of a webhook.
type Searched struct {
	Objects    int      // number of objects that were tried
	Keys       []string // keys of labels and annotations
	Values     []string // values with which the keys were tried
	Words      int      // number of other texts that were tried as names, images and variables
	Namespaces []string
	Spent      bool // the search reached its limit of calls
}

const (
	// probes is the number of generated objects that are tried before the search for a trigger.
	probes = 8
	// callsToSearch and callsToSearchByURL are the maximum numbers of calls to search for the trigger of a webhook.
	callsToSearch, callsToSearchByURL = 400, 200
	mostSingleKeys                    = 30 // keys that are tried one by one
	mostValuesOfKey                   = 12 // keys that are tried with each value
	keysAtOnce                        = 8
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
		t, _ := r.triggerOf(acting)
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
	left  int
	acts  any // the object that the webhook changed
	tried *Searched
}

// search tries objects with labels, annotations and names that may switch the webhook on.
func (r *Run) search() {
	h := r.hintsOf()
	f := &finder{Run: r, left: callsToSearch, tried: &Searched{Keys: h.Keys, Values: valuesOf(h), Words: len(h.Words)}}
	for _, w := range r.Webhooks {
		if !w.InProcess {
			f.left = callsToSearchByURL
		}
	}
	r.Searched = f.tried
	for _, base := range f.bases() {
		f.from(base, h)
		if f.acts != nil {
			t, _ := r.triggerOf(f.acts)
			r.Triggers = append(r.Triggers, *t)
			r.inputs.found = t
			return
		}
	}
	f.tried.Spent = f.left <= 0
}

// bases returns the objects to which labels, annotations and names are added: the samples, or else a small object and a
// large one.
func (f *finder) bases() (list []any) {
	n := len(f.inputs.samples)
	random := rand.New(rand.NewPCG(uint64(f.Seed), 4))
	for i := range max(min(n, 2), 1) {
		list = append(list, f.selected(f.inputs.object(random, i)))
	}
	if n == 0 {
		list = append(list, f.selected(f.inputs.object(random, 1)))
	}
	return list
}

// selected returns the document with the labels that the objectSelectors require, and without those that they exclude.
func (f *finder) selected(doc any) any {
	for _, w := range f.Webhooks {
		if w.ObjectSelector == nil {
			continue
		}
		for key, value := range w.ObjectSelector.MatchLabels {
			doc = put(doc, edits.Metadata.Member("labels").Member(key), value)
		}
		for _, e := range w.ObjectSelector.MatchExpressions {
			at := edits.Metadata.Member("labels").Member(e.Key)
			switch {
			case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0:
				doc = put(doc, at, e.Values[0])
			case e.Operator == metav1.LabelSelectorOpExists:
				doc = put(doc, at, "true")
			case e.Operator == metav1.LabelSelectorOpDoesNotExist:
				if next, ok := tree.Remove(doc, at); ok {
					doc = next
				}
			}
		}
	}
	return doc
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
	switch f.ask(doc) {
	case trigger.Acts:
		f.acts = doc
	case trigger.Invalid:
		return false
	}
	f.left--
	f.tried.Objects++
	return f.acts != nil
}

// from tries variants of a document, the likeliest first, until the webhook changes one.
func (f *finder) from(base any, h *trigger.Hints) {
	if f.try(base) || f.pairs(base, h) || f.keys(base, h) || f.namespaces(base, h) || f.names(base, h) {
		return
	}
	for _, key := range few(h.Keys, mostValuesOfKey) {
		for _, value := range f.tried.Values {
			if f.try(annotated(base, []string{key}, value)) {
				return
			}
		}
	}
}

// pairs tries the pairs of the hints: first all at once, then each one alone.
func (f *finder) pairs(base any, h *trigger.Hints) (done bool) {
	all := base
	for _, p := range slices.Backward(h.Pairs) { // of several values of a key, the first one remains
		if !trigger.IsOff(p.Key) && p.Value != "" {
			all = annotated(all, []string{p.Key}, p.Value)
		}
	}
	if len(h.Pairs) > 0 && f.try(all) {
		return true
	}
	for _, p := range few(h.Pairs, mostSingleKeys) {
		if f.try(annotated(base, []string{p.Key}, p.Value)) {
			return true
		}
	}
	return false
}

// keys tries all keys at once with each value, then groups of keys, and then single keys.
func (f *finder) keys(base any, h *trigger.Hints) (done bool) {
	on := slices.DeleteFunc(slices.Clone(h.Keys), trigger.IsOff)
	for _, value := range f.tried.Values {
		if f.try(annotated(base, on, value)) {
			return true
		}
	}
	for keys := range slices.Chunk(on, keysAtOnce) {
		for _, value := range f.tried.Values[:2] {
			if f.try(annotated(base, keys, value)) {
				return true
			}
		}
	}
	for _, key := range few(h.Keys, mostSingleKeys) {
		for _, value := range []string{"true", "enabled", "false"} {
			if f.try(annotated(base, []string{key}, value)) {
				return true
			}
		}
	}
	return false
}

// namespaces tries the namespaces in Options.Namespaces.
func (f *finder) namespaces(base any, h *trigger.Hints) (done bool) {
	if !f.Kind.Namespaced {
		return false
	}
	for _, name := range few(f.Namespaces.Names(), mostValuesOfKey) {
		f.tried.Namespaces = append(f.tried.Namespaces, name)
		there := put(base, edits.Metadata.Member("namespace"), name)
		if f.try(there) || f.try(annotated(there, h.Keys, "true")) {
			return true
		}
	}
	return false
}

// names tries the words of the hints as variables, registries and names of a container, and as names of the object.
func (f *finder) names(base any, h *trigger.Hints) (done bool) {
	var variables []any
	for _, word := range h.Words {
		if isVariable(word) {
			variables = append(variables, map[string]any{"name": word, "value": "true"})
		}
	}
	for _, containers := range edits.ContainerLists(base) {
		value, _ := tree.Get(base, containers)
		list, _ := value.([]any)
		if len(list) == 0 {
			continue
		}
		first := containers.Element(tree.Identity(containers, list[0]), 0)
		if len(variables) > 0 && f.try(put(base, first.Member("env"), variables)) {
			return true
		}
		for _, word := range few(h.Words, mostSingleKeys) {
			if strings.ContainsAny(word, "/:") && f.try(put(base, first.Member("image"), strings.TrimSuffix(word, "/")+"/app:1")) {
				return true
			}
			if len(validation.IsDNS1123Label(word)) == 0 && f.try(put(base, first.Member("name"), word)) {
				return true
			}
		}
	}
	for _, word := range few(h.Words, mostValuesOfKey) {
		if len(validation.IsDNS1123Subdomain(word)) == 0 && f.try(put(base, edits.Metadata.Member("name"), word)) {
			return true
		}
	}
	return false
}

func isVariable(word string) bool {
	return len(word) > 2 && word == strings.ToUpper(word) && strings.ContainsFunc(word, func(c rune) bool { return c >= 'A' && c <= 'Z' }) &&
		len(validation.IsEnvVarName(word)) == 0
}

// valuesOf returns the values with which keys are tried: usual ones, and those of the hints.
func valuesOf(h *trigger.Hints) []string {
	values := []string{"true", "enabled"}
	for _, v := range slices.Concat(h.Values, []string{"yes", "on", "1", "inject", "auto", "8080", "{}", "[]"}) {
		if !slices.Contains(values, v) && v != "false" {
			values = append(values, v)
		}
	}
	return values
}

// annotated returns the document with an annotation and, if the value permits it, a label for each key. A Pod template
// in the document gets them, too.
func annotated(doc any, keys []string, value string) any {
	places := []tree.Path{edits.Metadata}
	for _, containers := range edits.ContainerLists(doc) {
		if len(containers) > 2 && containers[len(containers)-2].Name == "spec" { // not a Pod's own spec
			places = append(places, containers[:len(containers)-2].Member("metadata"))
		}
	}
	isLabel := len(validation.IsValidLabelValue(value)) == 0
	for _, at := range places {
		for _, key := range keys {
			doc = put(doc, at.Member("annotations").Member(key), value)
			if isLabel {
				doc = put(doc, at.Member("labels").Member(key), value)
			}
		}
	}
	return doc
}
