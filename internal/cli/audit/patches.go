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

// judgePatches looks at what each patch by itself, and with the request, proves.
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

// calledAgain reports whether a webhook that was called before this one was called again.
func (q *request) calledAgain(i int) bool {
	return slices.ContainsFunc(q.calls, func(again *call) bool {
		return again.round == 1 && slices.ContainsFunc(q.calls[:i], func(before *call) bool { return before.hook == again.hook })
	})
}

// onlyCause reports whether no other call of round 0 changed the object in a way that may be real.
func (q *request) onlyCause(i int) bool {
	for k, c := range q.calls {
		if k != i && c.round == 0 && c.mutated && !q.provesNoOp(k) {
			return false
		}
	}
	return true
}

// provesNoOp reports whether the log proves that the patch of a call changed nothing, though the API
// server says it did: built-in objects count as changed by the first patch of a request, whatever it
// does. It is proven where each operation only tests, or writes the single value that the request
// has in this place already. Places in lists are left alone, they may have moved, and so are places
// that an earlier call wrote.
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

// overlap reports whether an operation may change what is at a path.
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

// inList reports whether a path leads through something that may be an index.
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

// lookup returns what is at a path of members.
func lookup(doc []byte, path patch.Pointer) ([]byte, bool) {
	if len(doc) == 0 {
		return nil, false
	}
	for token := range path.Tokens() {
		var next []byte
		_ = each(doc, func(name string, member []byte) { // it has been checked
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

// same reports whether two single values are the same.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}

// judgeAdditions looks for webhooks that were called again and added to a list what they had added
// before: two of it are there now, unless somebody took the first one out or the list is another
// one. Where that may be so, nothing is said.
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

// addedTwice returns a list to which two calls added the same, or "".
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

// undisturbed reports whether no operation of the request, but for those of which except is true,
// can have taken something out of a list, or put another list in its place. What each call that
// changed the object did has to be known.
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

// disturbs reports whether an operation may take an element out of a list, or replaces or moves it.
// More elements do no harm, nor does what happens inside an element.
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

// shifts reports whether an operation may move the element of a list that a path leads through.
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
