// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/patch"
)

// A fightKey identifies a field of an object and the two webhooks that overwrite it.
type fightKey struct {
	a, b   hook
	path   patch.Pointer
	object object
}

// A write is a scalar value that a call wrote, or a field that it removed.
type write struct {
	call  *call
	value string // "" if it was removed
}

// judgeFights finds pairs of webhooks that overwrite the same field, within one request or in successive requests.
func (t *tally) judgeFights(q *request) {
	if mutatedTwice := q.inBothRounds(); len(mutatedTwice) > 1 {
		names := ""
		for _, h := range mutatedTwice {
			names += h.String() + " "
		}
		t.find(foundKey{rule: bothRounds, detail: names}, q, 0, mutatedTwice, q.calls...)
	}
	for _, path := range q.contested() {
		writes := q.writes(path)
		if a, b, ok := backAndForth(writes); ok {
			t.find(foundKey{rule: pingPong, a: a, b: b, detail: string(path)}, q, 0, []hook{a, b}, q.calls...)
			continue
		}
		if !q.stored() {
			continue
		}
		for i, w := range writes[1:] {
			before := writes[i]
			if w.call.hook != before.call.hook && w.value != before.value && q.tookBack(path, before, w) && (t.options.wants(w.call.hook) || t.options.wants(before.call.hook)) {
				row, _ := t.fights.row(fightKey{before.call.hook, w.call.hook, path, q.object})
				row.add(q, 0, before.call, w.call)
			}
		}
	}
}

// inBothRounds returns the webhooks that changed the object in both rounds. It returns nothing if patches are recorded,
// because patches prove more.
func (q *request) inBothRounds() (both []hook) {
	for _, c := range q.calls {
		if c.patched {
			return nil
		}
		if c.round == 1 && c.mutated && slices.ContainsFunc(q.calls, func(first *call) bool {
			return first.round == 0 && first.mutated && first.hook == c.hook
		}) {
			both = append(both, c.hook)
		}
	}
	slices.SortFunc(both, compareHooks)
	return both
}

// contested returns the paths to which more than one webhook wrote.
func (q *request) contested() (paths []patch.Pointer) {
	writers := map[patch.Pointer]hook{}
	for _, c := range q.calls {
		if !c.mutated {
			continue
		}
		for _, op := range c.patch {
			if !single(op) {
				continue
			}
			if first, ok := writers[op.Path]; !ok {
				writers[op.Path] = c.hook
			} else if first != c.hook && !slices.Contains(paths, op.Path) && !q.shifted(op.Path) {
				paths = append(paths, op.Path)
			}
		}
	}
	return paths
}

// single reports whether an operation writes a scalar to a field or removes the field.
func single(op patch.Operation) bool {
	if last := op.Path.Last(); op.Path == "" || last == "-" || isIndex(last) {
		return false
	}
	return op.Op == patch.Remove || (op.Op == patch.Add || op.Op == patch.Replace) && scalar(op.Value)
}

// shifted reports whether a patch of the request may move a list element that is part of path. The same path then means
// another field.
func (q *request) shifted(path patch.Pointer) bool {
	return slices.ContainsFunc(q.calls, func(c *call) bool {
		return slices.ContainsFunc(c.patch, func(op patch.Operation) bool { return shifts(op, path) })
	})
}

// writes returns the last write of each call to a path, in order of the calls.
func (q *request) writes(path patch.Pointer) (all []write) {
	for _, c := range q.calls {
		if !c.mutated {
			continue
		}
		for i := len(c.patch) - 1; i >= 0; i-- {
			if op := c.patch[i]; op.Path == path && single(op) {
				value := string(op.Value)
				if op.Op == patch.Remove {
					value = ""
				}
				all = append(all, write{c, value})
				break
			}
		}
	}
	return all
}

// backAndForth returns two webhooks that overwrite each other: the second changes the value of the first, and the first
// changes it again.
func backAndForth(writes []write) (a, b hook, ok bool) {
	for i, first := range writes {
		for k := i + 1; k < len(writes); k++ {
			second := writes[k]
			if second.call.hook == first.call.hook || second.value == first.value {
				continue
			}
			for _, third := range writes[k+1:] {
				if third.call.hook == first.call.hook && third.value != second.value {
					return first.call.hook, second.call.hook, true
				}
			}
		}
	}
	return hook{}, hook{}, false
}

// tookBack reports whether the log proves that the write first changed the stored value, and not a value that the user
// sent.
func (q *request) tookBack(path patch.Pointer, first, second write) bool {
	if q.sent != nil {
		value, ok := lookup(q.sent, path)
		if !ok || inList(path) {
			return !ok && second.value == "" && !inList(path)
		}
		return first.value == "" || !same(value, []byte(first.value))
	}
	if len(q.change) == 0 || q.change[0] != '{' {
		return false
	}
	return !inList(path) && !mentions(q.change, path)
}

// mentions reports whether a merge patch sets the field at a path or one of its parents.
func mentions(doc []byte, path patch.Pointer) bool {
	for token := range path.Tokens() {
		var next []byte
		_ = each(doc, func(name string, member []byte) { // split has checked the syntax
			if name == token {
				next = member
			}
		})
		if next == nil {
			return false
		}
		if next[0] != '{' {
			return true
		}
		doc = next
	}
	return true
}
