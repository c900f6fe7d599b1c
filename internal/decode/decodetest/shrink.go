// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// shrinkBudget is the number of smaller documents to try.
const shrinkBudget = 20_000

// A shrinker looks for a smaller document that fails too, for any reason.
type shrinker struct {
	fails  func(doc []byte) bool
	best   []byte
	budget int
}

// Shrink returns a failing case with the smallest document that it finds. If a part of the document fails on its own, the
// case is that part and its type. Member names are cut last, because they determine the type of a part.
func Shrink(c Case, fails func(t reflect.Type, doc []byte) bool) Case {
	s := shrinker{best: c.Doc, budget: shrinkBudget}
	s.fails = func(doc []byte) bool { return fails(c.Type, doc) }
	for {
		if root := parseable(s.best, nil); root != nil {
			s.prune(root, root)
		}
		t, part := failingPart(parseable(s.best, c.Type), fails)
		if part == nil || len(part) >= len(s.best) {
			break
		}
		c.Type, s.best = t, part
	}
	for before := len(s.best) + 1; len(s.best) < before && s.budget > 0; {
		before = len(s.best)
		s.cut()
	}
	c.Doc = s.best
	return c
}

// parseable returns the tree of a document, or nil if it is not JSON.
func parseable(doc []byte, t reflect.Type) *node {
	if !json.Valid(doc) {
		return nil
	}
	return parse(doc, t)
}

// failingPart finds the innermost value that fails on its own.
func failingPart(root *node, fails func(t reflect.Type, doc []byte) bool) (t reflect.Type, doc []byte) {
	if root == nil {
		return nil, nil
	}
	root.visit(func(n *node) {
		if text := []byte(n.String()); n != root && n.typ != nil && fails(n.typ, text) {
			t, doc = n.typ, text
		}
	})
	return t, doc
}

func (s *shrinker) try(doc []byte) bool {
	s.budget--
	if s.budget < 0 || len(doc) > len(s.best) || bytes.Equal(doc, s.best) || !s.fails(doc) {
		return false
	}
	s.best = bytes.Clone(doc)
	return true
}

// prune removes members and elements from a tree, the outermost first.
func (s *shrinker) prune(root, n *node) {
	fails := func() bool { return s.try([]byte(root.String())) }
	removeEach(&n.members, fails)
	removeEach(&n.elems, fails)
	for _, text := range []string{"0", "{}", "[]", "null", `""`} {
		old := *n
		if n.set(scalar(text)); fails() {
			return
		}
		*n = old
	}
	for _, m := range n.members {
		s.prune(root, m.value)
	}
	for _, elem := range n.elems {
		s.prune(root, elem)
	}
}

// removeEach removes each item of a list without which the document still fails.
func removeEach[T any](list *[]T, fails func() bool) {
	for i := 0; i < len(*list); {
		old := *list
		if *list = slices.Delete(slices.Clone(old), i, i+1); !fails() {
			*list = old
			i++
		}
	}
}

// cut removes runs of bytes, long ones first.
func (s *shrinker) cut() {
	for size := len(s.best) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(s.best) && s.budget > 0; {
			if !s.try(slices.Delete(bytes.Clone(s.best), i, i+size)) {
				i += max(1, size/2)
			}
		}
	}
}
