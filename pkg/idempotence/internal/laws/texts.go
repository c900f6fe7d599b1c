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
	"github.com/admitkit/admitkit/pkg/idempotence/internal/texts"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// inText returns the first edit of a case that adds items to a text or writes it in another form.
func inText(c *Case) (edits.Edit, bool) {
	i := slices.IndexFunc(c.Edits, func(e edits.Edit) bool { return e.Format != "" })
	if i < 0 {
		return edits.Edit{}, false
	}
	return c.Edits[i], true
}

// itemsThere checks L5 on objects with a text that already has items of the webhook or of other parties.
type itemsThere struct{ *Trial }

func (l itemsThere) check(c *Case) *Finding {
	e, isText := inText(c)
	x, ok := l.ObjectOf(c)
	if !ok || !isText {
		return nil
	}
	part, ok := l.Edited(x, c.Edits)
	if !ok {
		return nil
	}
	plain := l.first(x)
	if !plain.OK() {
		return nil
	}
	s := l.Fresh()
	out := l.F(s, session.Query{Object: part})
	if v := l.failed(c, out); v != nil || !out.OK() {
		return v
	}
	was, _ := edits.TextAt(x.Doc, e.Path, e.Format)
	written, _ := edits.TextAt(plain.After.Doc, e.Path, e.Format)
	before, _ := edits.TextAt(part.Doc, e.Path, e.Format)
	after, ok := edits.TextAt(out.After.Doc, e.Path, e.Format)
	if ok && e.Format.IsList() && !l.excepted(c.Law, e.Path) {
		if v := l.repeated(c, e, before, after, out); v != nil {
			return v
		}
		foreign := texts.Minus(texts.Minus(e.Format.Items(before), e.Format.Items(was)), e.Format.Items(written))
		if v := l.lostItems(c, e, foreign, after, out); v != nil {
			return v
		}
		own := texts.Minus(e.Format.Items(written), e.Format.Items(was))
		if v := l.mistaken(c, e, x, own, before, after, out); v != nil {
			return v
		}
	}
	again := l.F(s, session.Query{Object: out.After})
	if again.Fault == "" && !again.Allowed {
		return l.Finding(c, Denied, "if a text has other items already, the webhook allows the object and then denies its own result: "+again.Message, out, again)
	}
	return l.unchanged(c, out, again)
}

// repeated returns a finding if the webhook has added an item that the text before already had.
func (t *Trial) repeated(c *Case, e edits.Edit, before, after string, shown ...*session.Outcome) *Finding {
	item := e.Format.Repeated(before, after)
	if item == "" || !slices.Contains(e.Format.Items(before), item) {
		return nil
	}
	return t.Finding(c, Accumulates, fmt.Sprintf("the webhook adds an item again: %s has %s twice in the text %s", e.Path, item, brief(after)), shown...)
}

// lostItems returns a finding if the webhook removes some of the items that other parties have added to a text. foreign
// lists these items. If the webhook removes all of them, it may be meant to overwrite the text.
func (t *Trial) lostItems(c *Case, e edits.Edit, foreign []string, after string, out *session.Outcome) *Finding {
	lost := texts.Minus(foreign, e.Format.Items(after))
	if len(lost) == 0 || len(lost) == len(foreign) {
		return nil
	}
	return t.Finding(c, Removes, fmt.Sprintf("the webhook removes an item that it did not set: %s of the text %s", lost[0], e.Path), out)
}

// mistaken returns a finding if the webhook mistakes an item of another party for its own, because the other item
// contains its own item. own lists the items of the webhook.
func (t *Trial) mistaken(c *Case, e edits.Edit, x *objects.Object, own []string, before, after string, out *session.Outcome) *Finding {
	missing := slices.DeleteFunc(slices.Clone(own), func(item string) bool {
		return slices.Contains(e.Format.Items(after), item) || slices.Contains(e.Format.Items(before), item) || !strings.Contains(before, item)
	})
	if len(missing) == 0 || e.Format.IsDocument() || !slices.Contains(e.Format.Items(before), texts.Alike(missing[0])) {
		return nil
	}
	e.Value = strings.ReplaceAll(before, texts.Alike(missing[0]), texts.Token(missing[0], 0))
	other, ok := t.Edited(x, []edits.Edit{e})
	if !ok {
		return nil
	}
	merged := t.F(t.Fresh(), session.Query{Object: other})
	if !merged.OK() {
		return nil
	}
	text, _ := edits.TextAt(merged.After.Doc, e.Path, e.Format)
	if e.Format.Lost([]string{missing[0], texts.Token(missing[0], 0)}, text) != "" {
		return nil // any item of another party keeps the webhook from adding its own
	}
	return t.Finding(c, Incomplete, fmt.Sprintf("the webhook leaves out its item %s of the text %s, because another item contains it: %s", missing[0], e.Path, brief(before)), merged, out)
}

// lateItems compares two results: another party extended a text after the first call (late), or before it (fresh). It
// returns a finding only if an item is lost or repeated. Other differences are allowed, because a webhook may read the
// text only once.
func (l lateAdditions) lateItems(c *Case, e edits.Edit, first, late, start, fresh *session.Outcome) *Finding {
	after, _ := edits.TextAt(late.After.Doc, e.Path, e.Format)
	expected, _ := edits.TextAt(fresh.After.Doc, e.Path, e.Format)
	if l.excepted(c.Law, e.Path) {
		return nil
	}
	text, _ := e.Value.(string)
	added := e.Format.Items(text)
	if e.Format.IsDocument() {
		added = texts.JSON.Items(text)
	}
	if lost := e.Format.Lost(texts.Minus(added, texts.Minus(added, e.Format.Items(expected))), after); lost != "" {
		return l.Finding(c, Removes, fmt.Sprintf("the webhook removes an item that was added between two calls, but not one that was added before the first call: %s of the text %s", lost, e.Path), first, start, late)
	}
	if item := e.Format.Repeated(expected, after); item != "" {
		return l.Finding(c, Accumulates, fmt.Sprintf("the webhook adds an item again after an addition between two calls: %s has %s twice in the text %s", e.Path, item, brief(after)), first, late, start, fresh)
	}
	return nil
}

// addsNameAgain returns a finding if the webhook adds a flag or an HTTP header again after another party has written it
// in another form (see edits.OtherSpellings).
func (l afterEdits) addsNameAgain(c *Case, edited *objects.Object, first, second *session.Outcome) *Finding {
	if !slices.ContainsFunc(c.Edits, edits.IsOtherSpelling) {
		return nil // most edits are about something else, and counting the names of two documents takes time
	}
	before, after := edits.CountNames(edited.Doc), edits.CountNames(second.After.Doc)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		used := before[name]
		isFlag := strings.HasPrefix(used.Name, "--")
		if after[name].Count <= used.Count || l.excepted(c.Law, used.Path) || !slices.ContainsFunc(c.Edits, func(e edits.Edit) bool { return edits.IsOtherSpelling(e) && e.Path.HasPrefix(used.Path) }) {
			continue
		}
		own, other := wordsAt(first.After, used.Path), wordsAt(edited, used.Path)
		if isFlag && slices.Contains(own, any(used.Name)) == slices.Contains(other, any(used.Name)) {
			continue // the party has respelled another flag
		}
		v := l.Finding(c, Accumulates, fmt.Sprintf("the webhook adds %s a second time to %s after another party has written it in another form", used.Name, used.Path), first, second)
		switch {
		case isFlag:
			v.Advice = !l.knowsFlag(first.After, used.Path, used.Name)
		default:
			v.Advice = !edits.IsHTTPHeaderList(used.Path) // the names may be case-sensitive
		}
		return v
	}
	return nil
}

// prefixesAgain returns a finding if the webhook puts its registry before an image again after another party has put its own
// before it (see edits.PrefixedImages). The image then grows with each call of both.
func (l afterEdits) prefixesAgain(c *Case, x *objects.Object, first, second *session.Outcome) *Finding {
	if len(c.Edits) != 1 || !edits.IsPrefixedImage(c.Edits[0]) || l.excepted(c.Law, c.Edits[0].Path) {
		return nil
	}
	at := c.Edits[0].Path
	sent, _ := tree.Get(x.Doc, at)
	once, _ := tree.Get(first.After.Doc, at)
	twice, _ := tree.Get(second.After.Doc, at)
	registry, image := edits.OwnRegistry(sent, once), fmt.Sprint(twice)
	if registry == "" || strings.Count(image, registry) < 2 {
		return nil
	}
	v := l.Finding(c, Accumulates, fmt.Sprintf("%s: the webhook adds the registry %s a second time after another party has added its own: %s", at, registry, image), first, second)
	v.Advice = true // the webhook cannot know the registries of others
	return v
}

func wordsAt(o *objects.Object, list tree.Path) []any {
	value, _ := tree.Get(o.Doc, list)
	words, _ := value.([]any)
	return words
}

// knowsFlag reports whether the webhook keeps a flag that has another value, in the form in which it writes the flag. A
// webhook that adds its flag anyway does not parse arguments, so a repeated flag is only advice.
func (l afterEdits) knowsFlag(result *objects.Object, list tree.Path, flag string) bool {
	words := slices.Clone(wordsAt(result, list))
	i := slices.IndexFunc(words, func(w any) bool { text, _ := w.(string); return text == flag || strings.HasPrefix(text, flag+"=") })
	switch {
	case i < 0:
		return false
	case words[i] != any(flag):
		words[i] = flag + "=rival"
	case i+1 < len(words):
		words[i+1] = "rival"
	}
	other, ok := l.Edited(result, []edits.Edit{{What: edits.Put, Path: list, Value: words}})
	if !ok {
		return false
	}
	out := l.F(l.Fresh(), session.Query{Object: other})
	return out.OK() && tree.Equal(wordsAt(out.After, list), words)
}

// afterOtherForm returns a finding if the webhook changes its own text again after another party has written it in
// another form: it adds an item a second time, or computes a new value.
func (l afterEdits) afterOtherForm(c *Case, edited *objects.Object, first, second *session.Outcome) *Finding {
	e, ok := inText(c)
	if !ok || l.excepted(c.Law, e.Path) {
		return nil
	}
	before, _ := edits.TextAt(edited.Doc, e.Path, e.Format)
	after, _ := edits.TextAt(second.After.Doc, e.Path, e.Format)
	if v := l.repeated(c, e, before, after, first, second); v != nil || e.Format.IsList() {
		return v
	}
	written, _ := edits.TextAt(first.After.Doc, e.Path, e.Format)
	if after == "" || !e.Format.Same(written, before) || e.Format.Same(before, after) {
		return nil
	}
	return l.Finding(c, Changes, fmt.Sprintf("another party writes a value of the webhook in another form with the same meaning, and the webhook changes it again: %s: %s → %s", e.Path, brief(before), brief(after)), first, second)
}
