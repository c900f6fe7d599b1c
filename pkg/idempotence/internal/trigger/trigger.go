// SPDX-License-Identifier: Apache-2.0

// Package trigger finds out which parts of an object make a webhook change it.
package trigger

import (
	"maps"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Need says which values of a part make the webhook change the object.
type Need string

// The needs.
const (
	Set    Need = "set"    // any value
	Value  Need = "value"  // the value of the object or one of Others, but none of the other values that were tried
	Absent Need = "absent" // the part must not be set
)

// A Part is a part of an object that the webhook needs in order to change the object.
type Part struct {
	Path   tree.Path
	Need   Need
	Value  any   // the value in the object
	Others []any // other values with which the webhook changes the object
}

// String describes the part in words, such as "metadata.annotations[example.com/inject] is set".
func (p Part) String() string {
	switch {
	case p.Need == Absent:
		return p.Path.String() + " is not set"
	case p.Need == Value && len(p.Others) > 0:
		return p.Path.String() + " is " + string(tree.Encode(p.Value)) + " or " + string(tree.Encode(p.Others[0]))
	case p.Need == Value:
		return p.Path.String() + " is " + string(tree.Encode(p.Value))
	case len(p.Others) > 0 && !slices.Contains(p.Others, any(otherText)) && isText(p.Value):
		return p.Path.String() + " is set to a value such as " + string(tree.Encode(p.Value)) + " or " + string(tree.Encode(p.Others[0]))
	}
	return p.Path.String() + " is set"
}

// An Answer is what happens to a document that is sent to a webhook.
type Answer int

// The answers.
const (
	Invalid Answer = iota // the API server rejects the document, so the webhook is not called
	Idle                  // the webhook does not change it
	Acts                  // the webhook changes it
)

// mostTries is the maximum number of documents that Find tries, including those that the API server rejects.
const mostTries = 400

// Find returns the parts of doc that the webhook needs in order to change doc, and doc without all other parts. ask
// sends a document to the webhook. Find makes at most most calls of the webhook. If these are not enough, smallest
// keeps the parts that were not tried, and complete is false.
func Find(doc any, most int, ask func(doc any) Answer) (smallest any, parts []Part, complete bool) {
	s := &search{ask: ask, calls: most, tries: mostTries, doc: doc}
	s.inside(nil)
	slices.SortStableFunc(s.parts, func(a, b Part) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return s.doc, s.parts, !s.spent()
}

// A search is the state of Find.
type search struct {
	ask          func(any) Answer
	calls, tries int // how many more are allowed
	doc          any // the smallest document so far on which the webhook acts
	parts        []Part
}

func (s *search) spent() bool { return s.calls <= 0 || s.tries <= 0 }

// try sends a document to the webhook and counts the call. It returns Invalid if the limits are reached.
func (s *search) try(doc any) Answer {
	if s.spent() {
		return Invalid
	}
	s.tries--
	answer := s.ask(doc)
	if answer != Invalid {
		s.calls--
	}
	return answer
}

// inside removes the parts below a path that the webhook does not need. It reports whether the webhook needs any of
// them.
func (s *search) inside(p tree.Path) (needed bool) {
	for _, kept := range s.reduce(children(s.doc, p)) {
		if s.within(kept.path, kept.answer) {
			needed = true
		}
	}
	return needed
}

// A remainder is a value that cannot be removed, and the answer to the document without it.
type remainder struct {
	path   tree.Path
	answer Answer
}

// reduce removes as many of the paths as possible: it tries all of them at once, and if that fails, each half in turn.
// It returns the paths that remain.
func (s *search) reduce(paths []tree.Path) []remainder {
	if len(paths) == 0 {
		return nil
	}
	doc, ok := s.doc, true
	for _, p := range slices.Backward(paths) {
		if next, removed := tree.Remove(doc, p); removed {
			doc = next
		} else {
			ok = false
		}
	}
	answer := Invalid
	if ok {
		if answer = s.try(doc); answer == Acts {
			s.doc = doc
			return nil
		}
	}
	if len(paths) == 1 {
		return []remainder{{paths[0], answer}}
	}
	half := len(paths) / 2
	after := s.reduce(paths[half:]) // removing an element may change the paths of later elements, so they come first
	return append(s.reduce(paths[:half]), after...)
}

// within finds the parts that the webhook needs in a value that cannot be removed, and reports whether there are any.
// without is the answer to the document without the value.
func (s *search) within(p tree.Path, without Answer) bool {
	if s.spent() {
		return false
	}
	value, ok := tree.Get(s.doc, p)
	if !ok {
		return false
	}
	if isComposite(value) {
		switch {
		case s.inside(p):
			return true
		case without == Idle && !s.spent():
			value, _ = tree.Get(s.doc, p)
			s.parts = append(s.parts, Part{Path: p, Need: Set, Value: value})
			return true
		}
		return false
	}
	others, idle := s.others(p, value)
	switch {
	case len(others) == 0 && idle, len(others) == 0 && without == Idle:
		s.parts = append(s.parts, Part{Path: p, Need: Value, Value: value})
	case without == Idle:
		s.parts = append(s.parts, Part{Path: p, Need: Set, Value: value, Others: others})
	default:
		return false // the API server requires it, not the webhook
	}
	return true
}

// others tries other values at a path. It returns the values with which the webhook changes the object. idle is true if
// there is a value with which it does not.
func (s *search) others(p tree.Path, value any) (acts []any, idle bool) {
	for _, other := range alternatives(value) {
		doc, ok := tree.Put(s.doc, p, other)
		if !ok {
			continue
		}
		switch s.try(doc) {
		case Acts:
			acts = append(acts, other)
		case Idle:
			idle = true
		}
	}
	return acts, idle
}

// children returns the sorted paths of the values in the object or list at p. It leaves out the apiVersion, kind and
// status of the object.
func children(doc any, p tree.Path) (paths []tree.Path) {
	value, _ := tree.Get(doc, p)
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if len(p) > 0 || name != "apiVersion" && name != "kind" && name != "status" {
				paths = append(paths, p.Member(name))
			}
		}
	case []any:
		seen := map[string]int{}
		for _, element := range value {
			key := tree.Identity(p, element)
			paths = append(paths, p.Element(key, seen[key]))
			seen[key]++
		}
	}
	return paths
}

func isComposite(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

func isText(v any) bool { _, ok := v.(string); return ok }
