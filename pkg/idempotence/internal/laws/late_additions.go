// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// lateAdditions checks L4b: additions by other parties between two calls are treated like additions before the first
// call.
type lateAdditions struct{ *Trial }

func (l lateAdditions) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	early, ok := l.Edited(x, c.Edits)
	if !ok || !addsOnly(x, early, c.Edits) {
		return nil
	}
	s := l.Fresh()
	first := l.first(x)
	if !first.OK() {
		return nil
	}
	edited, ok := l.Edited(first.After, c.Edits)
	if !ok || !addsOnly(first.After, edited, c.Edits) {
		return nil
	}
	if c.Variant == CopyOfResult {
		return l.keepsName(c, first, edited)
	}
	late := l.F(s, session.Query{Object: edited})
	other := l.Fresh()
	fresh := l.F(other, session.Query{Object: early})
	start := fresh
	if fresh.OK() {
		if again := l.F(other, session.Query{Object: fresh.After}); again.OK() {
			fresh = again
		}
	}
	switch {
	case late.OK() != fresh.OK() && c.Variant == LateNote:
		return nil // L4a tries the same edit
	case late.OK() != fresh.OK() && (late.FaultOf == session.NoDecision || fresh.FaultOf == session.NoDecision):
		return l.Finding(c, ServerError, fmt.Sprintf("the request is %s when the addition comes between two calls, and %s when it comes before the first call", described(late), described(fresh)), first, late, start)
	case late.OK() != fresh.OK():
		return l.Finding(c, DecidesDifferently, fmt.Sprintf("the object is %s when the addition comes between two calls, and %s when it comes before the first call", described(late), described(fresh)), first, late)
	case !late.OK():
		return nil
	}
	if c.Variant == LateNote {
		return l.keptEmpty(c, x, first, late, start, fresh)
	}
	if e, ok := inText(c); ok {
		return l.lateItems(c, e, first, late, start, fresh)
	}
	differences := l.withoutEncoding(l.content(c.Law, late.After, fresh.After))
	if same := l.splitValue(early, late.After.Doc, fresh.After.Doc); same != "" {
		return l.Finding(c, TreatedUnlike, "after an addition between two calls, "+same, first, late, start, fresh)
	}
	if len(differences) == 0 {
		return nil
	}
	v := l.Finding(c, TreatedUnlike, "an addition between two calls is not treated like an addition before the first call: "+
		summary(differences), first, late, start, fresh)
	if same := sharedValue(differences, late.After.Doc, fresh.After.Doc); same != "" {
		v.Summary = "after an addition between two calls, " + same
		return v
	}
	if same := setsInSecond(x.Doc, first.After.Doc, late.After.Doc, fresh.After.Doc, differences); same != "" && atFront(c.Edits) && !tree.Equal(edited.Doc, late.After.Doc) {
		v.Summary = "after an addition between two calls, " + same
		return v
	}
	if onlyReordered(differences, late.After.Doc, fresh.After.Doc) || ofSibling(c.Edits, x, first.After, differences) || l.setOnce(c.Law, x, first.After, late.After, fresh.After, atFront(c.Edits), l.twice) {
		v.Advice = true
	}
	return v
}

// keptEmpty returns a finding if the first call sets an empty value that the webhook derives from an annotation or
// label, and a later call keeps it although the annotation or label was added.
func (l lateAdditions) keptEmpty(c *Case, x *objects.Object, first, late, start, fresh *session.Outcome) *Finding {
	for _, d := range l.content(c.Law, late.After, fresh.After) {
		if tree.Has(x.Doc, d.Path) || edits.IsZero(d.New) {
			continue
		}
		set, ok := tree.Get(first.After.Doc, d.Path)
		empty := d.Kind == tree.Replaced && ok && edits.IsZero(set) && !edits.MayBeMeant(set) && edits.IsZero(d.Old)
		if empty || d.Kind == tree.Added && isEmptyVariable(first.After.Doc, d.Path) {
			return l.Finding(c, AddsZero, fmt.Sprintf("the webhook sets %s to an empty value, and keeps it when %s is added. If that is there at the first call, the webhook sets %s",
				d.Path, c.Edits[0].Path, brief(d.New)), first, late, start, fresh)
		}
	}
	return nil
}

// keepsName returns a finding if the webhook writes the name of a container into the container, and keeps it in a copy
// that has another name. plain is the webhook's first result with a copy of the container as it was before.
func (l lateAdditions) keepsName(c *Case, first *session.Outcome, plain *objects.Object) *Finding {
	if len(c.Edits) != 1 {
		return nil
	}
	at := c.Edits[0].Path
	by, _ := c.Edits[0].Value.(map[string]any)
	value, _ := tree.Get(first.After.Doc, at)
	list, _ := value.([]any)
	for _, element := range list {
		changed, isObject := element.(map[string]any)
		original, _ := changed["name"].(string)
		copied, ok := edits.CopyOf(changed)
		if !isObject || !ok || copied["name"] != by["name"] {
			continue
		}
		edited, ok := l.Edited(first.After, []edits.Edit{{What: edits.Insert, Path: at, Value: copied}})
		if !ok {
			return nil
		}
		name, _ := copied["name"].(string)
		late, fresh := l.F(l.Fresh(), session.Query{Object: edited}), l.F(l.Fresh(), session.Query{Object: plain})
		if !late.OK() || !fresh.OK() {
			return nil
		}
		for _, d := range l.content(c.Law, late.After, fresh.After) {
			was, areTexts := d.Old.(string)
			is, isText := d.New.(string)
			if d.Path.HasPrefix(at) && areTexts && isText && strings.Contains(is, name) && was == strings.ReplaceAll(is, name, original) {
				v := l.Finding(c, TreatedUnlike, fmt.Sprintf("the webhook writes the name of a container into %s. If another party copies the container under the name %s, the copy keeps %s", d.Path, name, brief(was)), first, late, fresh)
				v.Advice = true // it may be what the author of the copy wants
				return v
			}
		}
		return nil
	}
	return nil
}

// isEmptyVariable reports whether a path leads to the value of an environment variable that has only a name: the API
// server does not store an empty value.
func isEmptyVariable(doc any, p tree.Path) bool {
	n := len(p) - 1
	if n < 2 || p.Last() != "value" || p[n-2].Name != "env" {
		return false
	}
	variable, _ := tree.Get(doc, p[:n])
	fields, isObject := variable.(map[string]any)
	return isObject && len(fields) == 1
}

// sharedValue describes a value that two elements of a list share in late, although all elements have different values
// in fresh. For example, a webhook numbers the elements. It returns an empty string if there is no such value.
func sharedValue(differences []tree.Change, late, fresh any) string {
	for _, d := range differences {
		for i, step := range d.Path {
			if !step.Element {
				continue
			}
			list, rest := d.Path[:i], d.Path[i+1:]
			shared, distinct := twiceIn(valuesIn(late, list, rest)), valuesIn(fresh, list, rest)
			if shared != "" && len(distinct) > 1 && twiceIn(distinct) == "" {
				return fmt.Sprintf("two elements of %s have the same %s: %s, but not if the addition comes before the first call", list, rest, shared)
			}
		}
	}
	return ""
}

// onlyReordered reports whether the elements of a list have the same values in late and fresh, but in another order. For
// example, the webhook numbers the elements. Each number is then still unique.
func onlyReordered(differences []tree.Change, late, fresh any) bool {
	return !slices.ContainsFunc(differences, func(d tree.Change) bool {
		for i, step := range d.Path {
			if !step.Element || d.Kind != tree.Replaced {
				continue
			}
			list, rest := d.Path[:i], d.Path[i+1:]
			is, was := valuesIn(late, list, rest), valuesIn(fresh, list, rest)
			if len(is) > 1 && len(is) == len(was) && slices.Equal(slices.Sorted(slices.Values(is)), slices.Sorted(slices.Values(was))) {
				return false
			}
		}
		return true
	})
}

// setsInSecond describes a value that two elements of a list have in late. The webhook set it in one element in its
// first call, and in another one after the addition. If the addition comes before the first call, only one element has
// the value. setsInSecond returns an empty string if there is no such value.
func setsInSecond(x, first, late, fresh any, differences []tree.Change) string {
	for _, d := range differences {
		for i, step := range d.Path {
			if !step.Element || i+1 == len(d.Path) {
				continue
			}
			list, rest := d.Path[:i], d.Path[i+1:]
			count := func(doc any) int { return countWith(doc, list, rest) }
			if count(x) == 0 && count(first) == 1 && count(late) == 2 && count(fresh) == 1 {
				return fmt.Sprintf("two elements of %s have %s, but only one has it if the addition comes before the first call", list, rest)
			}
		}
	}
	return addedTwice(x, first, late, fresh)
}

// addedTwice describes a list element that the webhook adds to two lists: to one in the first call, and to another after
// the addition. It finds elements inside of elements without keys, such as a path in a rule of an Ingress. It returns ""
// if there is none.
func addedTwice(x, first, late, fresh any) (text string) {
	tree.Lists(first, func(p tree.Path, list []any) {
		for _, element := range list {
			if _, isObject := element.(map[string]any); isObject && text == "" &&
				occurrences(x, element) == 0 && occurrences(first, element) == 1 && occurrences(late, element) == 2 && occurrences(fresh, element) == 1 {
				text = fmt.Sprintf("two lists named %s contain %s, but only one contains it if the other party makes its addition before the first call", p.Last(), brief(string(tree.Encode(element))))
			}
		}
	})
	return text
}

// occurrences returns the number of list elements of a document that equal a value.
func occurrences(doc, value any) (n int) {
	tree.Lists(doc, func(_ tree.Path, list []any) {
		for _, element := range list {
			if tree.Equal(element, value) {
				n++
			}
		}
	})
	return n
}

// countWith returns the number of elements of the list at path list that have a value at path rest.
func countWith(doc any, list, rest tree.Path) (n int) {
	value, _ := tree.Get(doc, list)
	elements, _ := value.([]any)
	for _, element := range elements {
		if tree.Has(element, rest) {
			n++
		}
	}
	return n
}

// splitValue describes a value that all elements of a list share in fresh, but not in late, although an exception covers
// it. For example, a webhook generates an ID for all containers of a Pod, and then another one for a late container. It
// returns an empty string if there is no such value. early is the object of the request that has the result fresh.
func (t *Trial) splitValue(early *objects.Object, late, fresh any) string {
	if len(t.Exceptions) == 0 {
		return ""
	}
	for _, d := range tree.Changes(late, fresh) {
		if d.Kind != tree.Replaced {
			continue
		}
		for i, step := range d.Path {
			if !step.Element {
				continue
			}
			list, rest := d.Path[:i], d.Path[i+1:]
			split, shared := distinctIn(valuesIn(late, list, rest)), valuesIn(fresh, list, rest)
			if len(split) > 1 && len(shared) > 1 && len(distinctIn(shared)) == 1 && t.drawn(d.Path) && !t.declared(L4b, d.Path) && !t.isOfTime(early, d.Path) {
				return fmt.Sprintf("the elements of %s have different values of %s: %s, but not if the addition comes before the first call", list, rest, strings.Join(split, " and "))
			}
		}
	}
	return ""
}

// declared reports whether an exception for exactly this law covers a path.
func (t *Trial) declared(law Law, p tree.Path) bool {
	for i, e := range t.Exceptions {
		if e.Law == law && p.Matches(e.Path) {
			t.needed[i] = true
			return true
		}
	}
	return false
}

// drawn reports whether an exception that only L3 allows covers a path. The values there may differ between two requests.
func (t *Trial) drawn(p tree.Path) bool {
	return slices.ContainsFunc(t.Exceptions, func(e Exception) bool { return e.Law == L3 && p.Matches(e.Path) })
}

// distinctIn returns the different texts of a list.
func distinctIn(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// valuesIn returns the texts and numbers at a path in each element of a list.
func valuesIn(doc any, list, rest tree.Path) (values []string) {
	value, _ := tree.Get(doc, list)
	elements, _ := value.([]any)
	for _, element := range elements {
		switch leaf, _ := tree.Get(element, rest); leaf.(type) {
		case string, int64, float64:
			values = append(values, string(tree.Encode(leaf)))
		}
	}
	return values
}

// twiceIn returns the first text that a list has twice, or an empty string.
func twiceIn(list []string) string {
	for i, text := range list {
		if slices.Contains(list[:i], text) {
			return text
		}
	}
	return ""
}

// ofSibling reports whether two results differ only in defaults that the first call set, in an object or element to which
// an edit then added another field. A webhook may choose a default by the other fields there, and keep
// it.
func ofSibling(list []edits.Edit, x, first *objects.Object, differences []tree.Change) bool {
	return !slices.ContainsFunc(differences, func(d tree.Change) bool {
		value, set := tree.Get(first.Doc, d.Path)
		kept := d.Kind == tree.Replaced && !isComposite(d.Old) && set && tree.Equal(value, d.Old) && !tree.Has(x.Doc, d.Path)
		return !kept || !slices.ContainsFunc(list, func(e edits.Edit) bool {
			n := len(d.Path) - 1
			return len(e.Path) > n && e.Path.HasPrefix(d.Path[:n]) && !e.Path[n].Element
		})
	})
}

func atFront(list []edits.Edit) bool {
	return slices.ContainsFunc(list, func(e edits.Edit) bool { return e.Front })
}

// addsOnly reports whether the edits add their values and change nothing else, not even through the API server's
// defaults.
func addsOnly(before, after *objects.Object, list []edits.Edit) bool {
	return !slices.ContainsFunc(tree.Changes(before.Doc, after.Doc), func(c tree.Change) bool {
		return !slices.ContainsFunc(list, func(e edits.Edit) bool { return c.Path.HasPrefix(e.Path) || e.Path.HasPrefix(c.Path) })
	})
}
