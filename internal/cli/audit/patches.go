// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/pkg/patch"
)

// judgePatches finds patches with secrets, patches that change nothing, and repeated additions.
func (t *tally) judgePatches(q *request) {
	for i, c := range q.calls {
		if !c.patched {
			continue
		}
		for _, op := range c.patch {
			if why := q.secret(op); why != "" {
				t.about(secretInPatch, c.hook, why, q, c)
			}
		}
		switch {
		case !c.mutated:
			t.about(noOp, c.hook, "", q, c)
		case !q.provesNoOp(i):
		case c.round == 0 && q.calledAgain(i) && q.onlyCause(i):
			t.about(noOpReinvokes, c.hook, "", q, q.calls...)
		default:
			t.about(noOp, c.hook, "", q, c)
		}
	}
	t.judgeAdditions(q)
}

// calledAgain reports whether a webhook that was called before call i was called again in round 1.
func (q *request) calledAgain(i int) bool {
	return slices.ContainsFunc(q.calls, func(again *call) bool {
		return again.round == 1 && slices.ContainsFunc(q.calls[:i], func(before *call) bool { return before.hook == again.hook })
	})
}

// onlyCause reports whether all calls of round 0 except call i left the object unchanged.
func (q *request) onlyCause(i int) bool {
	for k, c := range q.calls {
		if k != i && c.round == 0 && c.mutated && !q.provesNoOp(k) {
			return false
		}
	}
	return true
}

// provesNoOp reports whether the log proves that the patch of a call changed nothing. The API server may still record
// such a call as a mutation: for built-in objects it does so for the first patch of a request. For the proof, every
// operation must be a test, or write a scalar that the request already has. A field in a list proves nothing, because
// elements may have moved. A field that an earlier call may have written proves nothing either.
func (q *request) provesNoOp(i int) bool {
	for _, op := range q.calls[i].patch {
		if op.Op == patch.Test {
			continue
		}
		if op.Op != patch.Add && op.Op != patch.Replace || !scalar(op.Value) || inList(op.Path) {
			return false
		}
		for _, before := range q.calls[:i] {
			if before.mutated && (!before.patched || slices.ContainsFunc(before.patch, func(other patch.Operation) bool { return overlap(other, op.Path) })) {
				return false
			}
		}
		if value, ok := lookup(q.sent, op.Path); !ok || !same(value, op.Value) {
			return false
		}
	}
	return len(q.calls[i].patch) > 0
}

// overlap reports whether an operation may change the value at a path.
func overlap(op patch.Operation, path patch.Pointer) bool {
	if op.Op == patch.Test {
		return false
	}
	return op.Path.Contains(path) || path.Contains(op.Path) || op.From != "" && (op.From.Contains(path) || path.Contains(op.From))
}

// scalar reports whether a value is a string, a number or a bool.
func scalar(value []byte) bool {
	value = bytes.TrimSpace(value)
	return len(value) > 0 && value[0] != '{' && value[0] != '[' && value[0] != 'n'
}

// inList reports whether a path has a token that may be an index.
func inList(path patch.Pointer) bool {
	for token := range path.Tokens() {
		if token == "-" || isIndex(token) {
			return true
		}
	}
	return false
}

func isIndex(token string) bool {
	return token != "" && strings.Trim(token, "0123456789") == ""
}

// lookup returns the value at path in the JSON object doc. It returns false if the value is missing. It does not look
// into lists.
func lookup(doc []byte, path patch.Pointer) ([]byte, bool) {
	if len(doc) == 0 {
		return nil, false
	}
	for token := range path.Tokens() {
		var next []byte
		_ = each(doc, func(name string, member []byte) { // split has checked the syntax
			if name == token {
				next = member
			}
		})
		if next == nil || jsonraw.IsNull(next) {
			return nil, false
		}
		doc = next
	}
	return doc, true
}

// same reports whether two scalars are equal.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}

// judgeAdditions finds webhooks that added an element to a list and, when they were reinvoked, added an equal element.
// It makes no finding if another operation may have removed the first element or replaced the list.
func (t *tally) judgeAdditions(q *request) {
	for _, again := range q.calls {
		if again.round == 0 || !again.mutated {
			continue
		}
		for _, first := range q.calls {
			if first.round != 0 || !first.mutated || first.hook != again.hook {
				continue
			}
			if list := q.addedTwice(first, again); list != "" {
				t.about(notIdempotent, again.hook, string(list), q, q.calls...)
			}
		}
	}
}

// addedTwice returns the path of a list to which two calls added equal elements, or "".
func (q *request) addedTwice(first, again *call) patch.Pointer {
	for i, a := range first.patch {
		for k, b := range again.patch {
			list := a.Path.Parent()
			if !insertion(a) || !insertion(b) || list != b.Path.Parent() || !equalJSON(a.Value, b.Value) {
				continue
			}
			if q.undisturbed(list, func(c *call, n int) bool { return c == first && n == i || c == again && n == k }) {
				return list
			}
		}
	}
	return ""
}

// insertion reports whether an operation adds an element to a list.
func insertion(op patch.Operation) bool {
	last := op.Path.Last()
	return op.Op == patch.Add && (last == "-" || isIndex(last)) && len(op.Value) > 0 && !jsonraw.IsNull(op.Value)
}

// undisturbed reports whether no operation of the request can have removed elements of a list or replaced the list. It
// ignores operations for which except returns true. It returns false if a patch is not recorded.
func (q *request) undisturbed(list patch.Pointer, except func(c *call, n int) bool) bool {
	for _, c := range q.calls {
		if c.mutated && !c.patched {
			return false
		}
		for n, op := range c.patch {
			if !except(c, n) && disturbs(op, list) {
				return false
			}
		}
	}
	return true
}

// disturbs reports whether an operation may remove an element of a list, or replace or move the list. It returns false
// for operations that add an element, or change a field inside an element.
func disturbs(op patch.Operation, list patch.Pointer) bool {
	switch {
	case op.Op == patch.Test:
		return false
	case op.Path.Contains(list) || op.From != "" && op.From.Contains(list):
		return true
	case op.Path.Parent() == list:
		return !insertion(op)
	case op.From != "" && op.From.Parent() == list:
		return op.Op == patch.Move
	}
	return shifts(op, list)
}

// shifts reports whether an operation may move a list element that is part of a path.
func shifts(op patch.Operation, path patch.Pointer) bool {
	moves := func(place patch.Pointer) bool {
		return place != "" && isIndex(place.Last()) && place.Parent() != path && place.Parent().Contains(path)
	}
	return op.Op != patch.Test && op.Op != patch.Replace && (moves(op.Path) || op.Op == patch.Move && moves(op.From))
}

func equalJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
