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
// case is that part and its type. Names are removed last, because they determine the type of a part.
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
		s.plain()
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
	failsNow := func() bool { return s.try([]byte(root.String())) }
	for i := 0; i < len(n.members); {
		old := n.members
		if n.members = slices.Delete(slices.Clone(old), i, i+1); failsNow() {
			continue
		}
		n.members = old
		i++
	}
	for i := 0; i < len(n.elems); {
		old := n.elems
		if n.elems = slices.Delete(slices.Clone(old), i, i+1); failsNow() {
			continue
		}
		n.elems = old
		i++
	}
	for _, text := range []string{"0", "{}", "[]", "null", `""`} {
		old := *n
		if n.set(scalar(text)); failsNow() {
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

// cut removes runs of bytes, long ones first. At the end it removes pairs of equally long runs, such as an
// opening and a closing bracket.
func (s *shrinker) cut() {
	for size := len(s.best) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(s.best) && s.budget > 0; {
			if !s.try(slices.Delete(bytes.Clone(s.best), i, i+size)) {
				i += max(1, size/2)
			}
		}
	}
	for size := len(s.best) / 4; size > 0; size /= 2 {
		for i := 0; i+2*size <= len(s.best) && s.budget > 0; {
			j := len(s.best) - i - size
			if j < i+size || !s.try(slices.Concat(s.best[:i], s.best[i+size:j], s.best[j+size:])) {
				i += size
			}
		}
	}
}

// plain replaces characters with simple letters and zeros where this does not matter.
func (s *shrinker) plain() {
	for i := 0; i < len(s.best) && s.budget > 0; i++ {
		for _, b := range []byte("0a") {
			if c := s.best[i]; c == '0' || c == 'a' || bytes.IndexByte([]byte(`{}[]",: `), c) >= 0 {
				break
			}
			doc := bytes.Clone(s.best)
			if doc[i] = b; s.try(doc) {
				break
			}
		}
	}
}
