// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// similarNames checks L5 on an object with two elements that have similar names. The webhook must not confuse them. The
// first half of the edits of the case adds elements with plain names, and the second half adds the same elements with
// similar names. The check compares the two results.
type similarNames struct{ *Trial }

func (l similarNames) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	n := len(c.Edits)
	if !ok || n < 2 || n%2 > 0 {
		return nil
	}
	with := func(list []edits.Edit) (*objects.Object, *session.Outcome) {
		object, ok := l.Edited(x, list)
		if !ok {
			return nil, nil
		}
		return object, l.F(l.Fresh(), session.Query{Object: object})
	}
	alikeSent, alike := with(c.Edits[n/2:])
	if alike == nil {
		return nil
	}
	if v := l.failed(c, alike); v != nil || !alike.OK() {
		return v
	}
	sent, plain := with(c.Edits[:n/2])
	if plain == nil || !plain.OK() {
		return nil
	}
	inNote := edits.IsNote(c.Edits[0].Path) // the API server accepts any name in an annotation, and then its error is clear
	if problems := l.problems(c.Law, alike.After); !inNote && len(problems) > 0 && len(l.problems(c.Law, plain.After)) == 0 {
		return l.refused(c, "if two names are similar, ", problems, plain, alike)
	}
	if v := l.collision(c, l.derived(sent, plain), l.derived(alikeSent, alike), plain, alike); v != nil && !l.sharesAnyway(x, c.Edits[:n/2]) {
		v.Advice = v.Advice || onlyCase(c.Edits[n/2:])
		return v
	}
	added, expected := tree.Size(alike.After.Doc)-tree.Size(alikeSent.Doc), tree.Size(plain.After.Doc)-tree.Size(sent.Doc)
	if added >= expected || len(slices.DeleteFunc(l.differences(c.Law, plain.After, alike.After), func(d tree.Change) bool { return d.Kind == tree.Moved })) == 0 {
		return nil
	}
	return l.Finding(c, Incomplete, fmt.Sprintf("if two names are similar, the webhook confuses the elements: it adds %d values instead of %d", added, expected), plain, alike)
}

// derived returns the texts that a webhook added to an object, by the pattern of their path (see placeOf).
func (l similarNames) derived(sent *objects.Object, out *session.Outcome) map[string][]string {
	texts := map[string][]string{}
	for _, c := range l.differences(L5, sent, out.After) {
		if c.Kind != tree.Added {
			continue
		}
		tree.Leaves(c.New, func(p tree.Path, leaf any) {
			if text, ok := leaf.(string); ok {
				at := slices.Concat(c.Path, p)
				if isOfContainer(at) {
					return
				}
				place := placeOf(at)
				texts[place] = append(texts[place], text)
			}
		})
	}
	return texts
}

// isOfContainer reports whether a path leads to a part of a container, such as the path of a mount, that other containers
// may have, too.
func isOfContainer(p tree.Path) bool {
	for i := range p[:max(0, len(p)-2)] {
		if p[i].Element || !strings.HasSuffix(strings.ToLower(p[i].Name), "containers") || !p[i+1].Element {
			continue
		}
		switch p[i+2].Name {
		case "volumeMounts", "volumeDevices", "ports", "terminationMessagePath":
			return true
		case "env":
			return p.Last() == "name"
		}
	}
	return false
}

// sharesAnyway reports whether the webhook derives the same text also from two names that have nothing in common. It then
// divides the elements into groups, for example by a short hash. list has two edits that add elements.
func (l similarNames) sharesAnyway(x *objects.Object, list []edits.Edit) bool {
	for i := 0; i+1 < len(words); i += 2 {
		var pair []edits.Edit
		for n, e := range list {
			named, ok := withWord(e, words[i+n])
			if !ok {
				return false
			}
			pair = append(pair, named)
		}
		object, ok := l.Edited(x, pair)
		if !ok {
			continue
		}
		out := l.F(l.Fresh(), session.Query{Object: object})
		if !out.OK() {
			continue
		}
		for _, texts := range l.derived(object, out) {
			if len(texts) == len(pair) && len(distinctIn(texts)) < len(texts) {
				return true
			}
		}
	}
	return false
}

// onlyCase reports whether the edits add two elements whose names differ only in case.
func onlyCase(list []edits.Edit) bool {
	names := make([]string, 0, len(list))
	for _, e := range list {
		switch value := e.Value.(type) {
		case string:
			names = append(names, strings.ToLower(value))
		case map[string]any:
			names = append(names, strings.ToLower(fmt.Sprint(value["name"], value["host"])))
		}
	}
	return len(names) == 2 && names[0] == names[1]
}

// withWord returns an edit that adds the same element under another name. In a host name, the word replaces the first
// label. It returns false if the edit adds no element with a name.
func withWord(e edits.Edit, word string) (edits.Edit, bool) {
	inDomain := func(host string) string {
		_, domain, _ := strings.Cut(host, ".")
		return word + "." + domain
	}
	switch value := e.Value.(type) {
	case string:
		e.Value = inDomain(value)
		return e, e.What == edits.Insert && strings.Contains(value, ".")
	case map[string]any:
		value = maps.Clone(value)
		if host, ok := value["host"].(string); ok && value["name"] == nil {
			value["host"] = inDomain(host)
		} else {
			value["name"] = word
		}
		e.Value = value
		return e, e.What == edits.Insert
	}
	return e, false
}

// collision returns a finding if the webhook derives the same text from two similar names, but different texts from two
// plain names. It is advice unless the text is a reference: two elements may share a label, but not a name or path.
func (l similarNames) collision(c *Case, plain, alike map[string][]string, outcomes ...*session.Outcome) *Finding {
	for _, place := range slices.Sorted(maps.Keys(plain)) {
		expected, got := plain[place], alike[place]
		if len(expected) != len(got) || len(distinctIn(got)) >= len(distinctIn(expected)) {
			continue
		}
		v := l.Finding(c, Collides, fmt.Sprintf("from two similar names, the webhook derives the same %s: %s", place, brief(twiceIn(got))), outcomes...)
		v.Advice = !isReference(place)
		return v
	}
	return nil
}

// isReference reports whether the field at a place names something: another object, a file, or a part of the object.
func isReference(place string) bool {
	last := strings.ToLower(place[strings.LastIndex(place, ".")+1:])
	last = strings.TrimSuffix(strings.TrimSuffix(last, "[*]"), "s")
	return slices.ContainsFunc([]string{"name", "path", "key", "host", "ref"}, func(suffix string) bool { return strings.HasSuffix(last, suffix) })
}

// manyNames checks L5 on an object with many elements that differ only in their names. If the webhook adds the same
// number of values for most of them alone, it must add that number for each of them together.
type manyNames struct{ *Trial }

// mostAlone is the maximum number of elements that are tried alone.
const mostAlone = 3

func (l manyNames) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok || len(c.Edits) < 2 {
		return nil
	}
	plain := l.first(x)
	if !plain.OK() {
		return nil
	}
	without := tree.Size(plain.After.Doc) - tree.Size(x.Doc)
	each, times := 0, 0
	var alone *session.Outcome
	for i := range c.Edits[:min(len(c.Edits), mostAlone)] {
		out, added := l.added(x, c.Edits[i:i+1])
		if out == nil {
			return nil
		}
		switch more := added - without; {
		case more > each:
			each, times, alone = more, 1, out
		case more == each:
			times++
		}
	}
	all, added := l.added(x, c.Edits)
	if expected := without + each*len(c.Edits); all != nil && each > 0 && times > 1 && added < expected {
		v := l.Finding(c, Incomplete, fmt.Sprintf("the webhook adds values for each element, but elements with different names share some of them: it adds %d values instead of %d",
			added, expected), alone, all)
		v.Advice = l.countsOnly(x, c.Edits, without, each)
		return v
	}
	return nil
}

// words are names that have nothing in common. countsOnly divides them into groups.
var words = []string{"kilo", "a9", "x-ray-22", "mike", "zulu7", "q", "oscar-b", "under", "fox4", "i-j", "victor", "6th"}

// countsOnly reports whether the webhook adds too few values for the first few elements of a list, whatever their names
// are. It then acts on a part of the elements by their position. list has edits that each add an element, and each is
// the number of values that the webhook adds for one.
func (l manyNames) countsOnly(x *objects.Object, list []edits.Edit, without, each int) bool {
	const least, most = 2, 3 // with more elements, two of them may have the same short hash
	for size := least; size <= most; size++ {
		groups, short := len(words)/size, 0
		for group := range groups {
			var some []edits.Edit
			for i, word := range words[group*size : (group+1)*size] {
				e, ok := withWord(list[i%len(list)], word)
				if !ok {
					return false
				}
				some = append(some, e)
			}
			if out, added := l.added(x, some); out != nil && added < without+each*size {
				short++
			}
		}
		if short == groups {
			return true
		}
	}
	return false
}

// added returns the result for x with the edits, and the number of values that the webhook adds to it. It returns nil if
// the edits are invalid or the webhook does not allow the object: it may limit the number of elements.
func (l manyNames) added(x *objects.Object, list []edits.Edit) (*session.Outcome, int) {
	object, ok := l.Edited(x, list)
	if !ok {
		return nil, 0
	}
	out := l.F(l.Fresh(), session.Query{Object: object})
	if !out.OK() {
		return nil, 0
	}
	return out, tree.Size(out.After.Doc) - tree.Size(object.Doc)
}
