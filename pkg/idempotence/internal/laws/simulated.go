// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// AddCommon adds the simulated rivals. They change objects as webhooks in clusters often do.
func (r Rivals) AddCommon() {
	for _, e := range edits.Rivals {
		start := editsBy(e.Aim)
		if e.Conduct == edits.Fills {
			start = fills
		}
		r.add(Rival{name: e.Name, unaware: true, Conduct: e.Conduct, ignores: e.Ignores, start: start})
	}
}

// editsBy returns a function for Rival.start. The rival makes the edits of aim, without a call of a webhook.
func editsBy(aim func(x, result any) func(doc any) any) func(*Trial, *objects.Object) func(*objects.Object) *session.Outcome {
	return func(t *Trial, x *objects.Object) func(*objects.Object) *session.Outcome {
		result := x.Doc // if the webhook does not change x
		if out := t.first(x); out.OK() {
			result = out.After.Doc
		}
		change := aim(x.Doc, result)
		return func(o *objects.Object) *session.Outcome {
			doc := change(o.Doc)
			if sameMap(doc, o.Doc) {
				return session.Admitted(o)
			}
			next, ok := t.Valid(doc)
			if !ok {
				return session.Denied("the API server rejects the result of the other webhook")
			}
			return session.Admitted(next)
		}
	}
}

// fills is a function for Rival.start. The rival sets absent fields: those to which the webhook adds a zero value in x.
func fills(t *Trial, x *objects.Object) func(*objects.Object) *session.Outcome {
	puts := t.fillings(x)
	return func(o *objects.Object) *session.Outcome {
		for _, e := range puts {
			if tree.Has(o.Doc, e.Path) {
				continue
			}
			if next, ok := t.Edited(o, []edits.Edit{e}); ok {
				o = next
			}
		}
		return session.Admitted(o)
	}
}

// fillings returns edits that set the fields to which the webhook adds a zero value in x. The API server accepts the
// values.
func (t *Trial) fillings(x *objects.Object) (puts []edits.Edit) {
	out := t.first(x)
	if !out.OK() {
		return nil
	}
	for _, p := range edits.Zeros(t.additions(x, out.After), t.Kind.GoType == nil, t.Inputs.Varies) {
		zero, _ := tree.Get(out.After.Doc, p)
		values := edits.Fillings(p, zero)
		if value, ok := t.Inputs.Value(p); ok {
			values = slices.Insert(values, 0, value)
		}
		for _, value := range values {
			e := edits.Edit{What: edits.Put, Path: p, Value: value}
			filled, ok := t.Edited(x, []edits.Edit{e})
			if !ok || edits.IsZero(value) {
				continue
			}
			if now, ok := tree.Get(filled.Doc, p); ok && !edits.IsZero(now) {
				puts = append(puts, e)
				break
			}
		}
	}
	return puts
}

// additions returns the changes from x to its result. An empty value that Changed leaves out, as another spelling, counts
// if the field is a pointer, because a webhook that fills the field where it is nil sees it.
func (t *Trial) additions(x, result *objects.Object) []tree.Change {
	changes := t.Changed(x, result)
	if t.Kind.GoType == nil {
		return changes
	}
	for _, c := range tree.Changes(x.Doc, result.Doc) {
		if c.Kind == tree.Added && isVoid(c.New) && isSpelling(c) { // Go's encoder leaves out empty values that are no pointers
			changes = append(changes, c)
		}
	}
	return changes
}

// Meets reports whether a rival changes the object x or the webhook's result for it. Otherwise, a check with the rival
// would show nothing. Only simulated rivals are tried: for any other, Meets returns true.
func (t *Trial) Meets(name string, x, result *objects.Object) bool {
	rival := t.Rivals[name]
	if !rival.unaware {
		return true
	}
	call := rival.start(t, x)
	for _, o := range []*objects.Object{x, result} {
		if out := call(o); !out.OK() || !tree.Equal(out.After.Doc, o.Doc) {
			return true
		}
	}
	return false
}

// IsCostly reports whether a rival is simulated and changes more than its own parts. There are many such rivals.
func (t *Trial) IsCostly(name string) bool {
	rival := t.Rivals[name]
	return rival.unaware && rival.Conduct != edits.OwnParts
}

// OrderMatters reports whether the result may depend on the order of the webhook and a rival. L11 does not apply then.
func (t *Trial) OrderMatters(name string) bool { return t.Rivals[name].OrderMatters() }

// keptOut returns a finding if the webhook adds a zero value to an absent field and so keeps the rival from setting it.
// first is the final object if the webhook is called first, and second is the final object if the rival is called
// first.
func (l order) keptOut(c *Case, x *objects.Object, history, other []*session.Outcome, first, second *objects.Object) *Finding {
	var advice *Finding
	for _, e := range l.fillings(x) {
		zero, kept := tree.Get(first.Doc, e.Path)
		value, filled := tree.Get(second.Doc, e.Path)
		if !kept || !filled || !edits.IsZero(zero) || edits.IsZero(value) || l.excepted(c.Law, e.Path) {
			continue
		}
		v := l.Finding(c, AddsZero, fmt.Sprintf("the webhook adds %s: %s where no value was, so another webhook, %q, cannot set that field",
			e.Path, tree.Encode(zero), c.Rival), append(history[:min(2, len(history))], other[:min(2, len(other))]...)...)
		isInner := l.Kind.GoType == nil && len(e.Path) > mostOuter
		if v.Advice = isInner || isEmptyStruct(x.Doc, e.Path, zero); !v.Advice {
			return v
		}
		advice = v
	}
	return advice
}

// mostOuter is the greatest length of the path of a field in the spec of a custom resource. Other webhooks set such
// fields, but hardly any fields of the structs in them.
const mostOuter = 2

// isEmptyStruct reports whether a zero value is a struct of zero values, or a field of a struct that the object has
// without any field. A webhook that fills such a struct has to look at its fields.
func isEmptyStruct(doc any, p tree.Path, zero any) bool {
	fields, _ := zero.(map[string]any)
	parent, _ := tree.Get(doc, p[:len(p)-1])
	siblings, isObject := parent.(map[string]any)
	return len(fields) > 0 || isObject && len(siblings) == 0
}

// stale returns the differences that show a stale value: the webhook derived it from a value of the user that the rival
// then rewrote. Two leftovers are not stale: an annotation about the first call, and a value that the webhook would no
// longer set. If both webhooks rewrite the same values, stale returns nil.
func (l order) stale(x *objects.Object, alone, rival *session.Outcome, second *objects.Object, differences []tree.Change) []tree.Change {
	theirs := tree.Changes(x.Doc, rival.After.Doc)
	for _, own := range tree.Changes(x.Doc, alone.After.Doc) {
		if slices.ContainsFunc(theirs, func(c tree.Change) bool {
			return oneValue(c.Path).HasPrefix(oneValue(own.Path)) || oneValue(own.Path).HasPrefix(oneValue(c.Path))
		}) {
			return nil
		}
	}
	return slices.DeleteFunc(differences, func(d tree.Change) bool {
		if d.Kind == tree.Removed || edits.IsNote(d.Path) {
			return true
		}
		was, had := tree.Get(x.Doc, d.Path)
		now, has := tree.Get(second.Doc, d.Path)
		if had && has && tree.Equal(was, now) {
			return true // called after the rival, the webhook does not set the value
		}
		late, isText := d.Old.(string)
		fresh, also := d.New.(string)
		return isText && also && fresh != "" && strings.Contains(late, fresh)
	})
}

// oneValue returns p. But paths into the command or the arguments of a container become one path, because these are one
// value.
func oneValue(p tree.Path) tree.Path {
	for i, step := range p {
		if !step.Element && (step.Name == "command" || step.Name == "args") {
			return append(slices.Clone(p[:i]), tree.Step{Name: "command"})
		}
	}
	return p
}

// spoiled returns a finding if the webhook fails, or makes the object invalid, after a simulated rival has changed its
// result.
func (l settles) spoiled(c *Case, rival Rival, history []*session.Outcome) *Finding {
	if !rival.unaware || len(history) < 3 || !history[0].OK() {
		return nil
	}
	last := history[len(history)-1]
	if own := len(history)%2 == 1; !last.OK() && own {
		if last.FaultOf == session.NoDecision {
			return l.Finding(c, ServerError, fmt.Sprintf("after the webhook %q has changed the result, the webhook fails: %s", c.Rival, textutil.FirstLine(last.Fault)), history...)
		}
		return nil
	}
	if rival.Conduct == edits.Competes || len(l.problems(c.Law, history[0].After)) > 0 {
		return nil // the user sees a conflict of two values, and L1 reports an invalid first result
	}
	for i := 2; i < len(history); i += 2 {
		if !history[i].OK() {
			break
		}
		if problems := l.problems(c.Law, history[i].After); len(problems) > 0 {
			return l.refused(c, fmt.Sprintf("after the webhook %q has changed the result, ", c.Rival), problems, history[:i+1]...)
		}
	}
	return nil
}

// repeats returns a finding if the webhook adds a word to the command of a container again after a rival has changed
// the command.
func (l settles) repeats(c *Case, x *objects.Object, rival Rival, last *objects.Object, history []*session.Outcome) *Finding {
	if rival.Conduct != edits.Rewrites {
		return nil
	}
	for _, change := range edits.Single(tree.Changes(x.Doc, history[0].After.Doc)) {
		list := change.Path[:len(change.Path)-1]
		if change.Kind != tree.Added || len(list) == 0 || list.Last() != "command" && list.Last() != "args" || !tree.Has(x.Doc, list[:len(list)-1]) {
			continue
		}
		before, after := count(history[0].After.Doc, list, change.New), count(last.Doc, list, change.New)
		if after > before && !l.excepted(c.Law, list) {
			return l.Finding(c, Accumulates, fmt.Sprintf("after the webhook %q has changed %s, the webhook adds %s again", c.Rival, list, tree.Encode(change.New)), history[:3]...)
		}
	}
	return nil
}

// count returns how often a list has an element.
func count(doc any, list tree.Path, element any) (n int) {
	value, _ := tree.Get(doc, list)
	elements, _ := value.([]any)
	for _, e := range elements {
		if tree.Equal(e, element) {
			n++
		}
	}
	return n
}

// growsForever reports whether the object grows throughout a history that does not settle.
func growsForever(history []*session.Outcome) bool {
	n := len(history)
	early, middle, late := tree.Size(history[n/4].After.Doc), tree.Size(history[n/2].After.Doc), tree.Size(history[n-1].After.Doc)
	return early < middle && middle < late
}

// slightMoves are lists in which the order of elements has no effect, or only a small one. A webhook has to put a variable
// before all others that refer to it.
var slightMoves = append([]string{"env"}, edits.Unordered...)

func isSlightMove(c tree.Change) bool {
	return c.Kind == tree.Moved && slices.Contains(slightMoves, c.Path.Last())
}

// isContested reports whether two webhooks only enforce different values of the same fields, so that the user sees
// which one wins. history does not settle, and i is the index of the last call that changes the object. That call and
// the one before it must only replace single values or move elements whose order hardly matters.
func (l settles) isContested(law Law, history []*session.Outcome, i int) bool {
	if i < 2 || !l.moves(law, history, i-1) {
		return false
	}
	for _, at := range []int{i, i - 1} {
		for _, c := range l.differences(law, history[at-1].After, history[at].After) {
			if c.Kind != tree.Replaced && oneValue(c.Path).Last() != "command" && !isSlightMove(c) {
				return false
			}
		}
	}
	return tree.Size(history[i].After.Doc) <= tree.Size(history[4-i%2].After.Doc) // in the first round, both add their parts
}
