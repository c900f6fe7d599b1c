// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/texts"
)

// textObjects is the number of objects whose texts are edited, counted from the first.
const textObjects = 4

// tryTexts checks laws with edits of texts, such as lists and JSON in annotations. Other parties write a text of the
// webhook or the user in another form with the same meaning, or add items to a text of the webhook. result is the
// webhooks' result for x.
func (r *Run) tryTexts(i int, x, result *objects.Object) {
	if i >= textObjects+len(r.inputs.samples) {
		return
	}
	custom := r.Kind.GoType == nil
	changes := r.Changed(x, result)
	for _, t := range edits.WrittenTexts(x.Doc, changes, custom) {
		if r.uses(EqualTexts) {
			r.tryForms(x, t, t.After)
		}
		if f, base, ok := r.shared(x, t); ok {
			r.tryItems(x, base, t, f)
		}
	}
	if !r.uses(EqualTexts) {
		return
	}
	for _, e := range slices.Concat(edits.OtherSpellings(result.Doc, changes), edits.PrefixedImages(changes)) {
		r.try(&laws.Case{Law: laws.L4a, Object: x.Doc, Edits: []edits.Edit{e}})
	}
	if i >= min(max(1, len(r.inputs.samples)), mostVaried) {
		return
	}
	for n, t := range edits.UserTexts(x.Doc, custom) {
		if n == mostUserTexts {
			break
		}
		r.tryUserForms(x, t)
	}
}

// mostUserTexts is the maximum number of texts of an object for which tryTexts calls tryUserForms.
const mostUserTexts = 12

// tryUserForms checks L10, L2 and L1 on x with a text of the user in another form. It also checks L4a with another
// party that writes the text in this form after the first call.
func (r *Run) tryUserForms(x *objects.Object, t edits.Text) {
	for _, e := range few(t.OtherForms(t.Before), 2) {
		if other, ok := r.Edited(x, []edits.Edit{e}); ok {
			for _, law := range []laws.Law{laws.L10, laws.L2, laws.L1} {
				r.try(&laws.Case{Law: law, Object: other.Doc})
			}
		}
		r.try(&laws.Case{Law: laws.L4a, Object: x.Doc, Edits: []edits.Edit{e}})
	}
}

// tryForms checks L4a with another party that writes a text of the webhook in another form.
func (r *Run) tryForms(x *objects.Object, t edits.Text, text string) {
	if t.Flag != "" {
		return
	}
	for _, e := range t.OtherForms(text) {
		r.try(&laws.Case{Law: laws.L4a, Object: x.Doc, Edits: []edits.Edit{e}})
	}
}

// shared finds out whether the webhook adds its items to the items of others in a text. If so, it returns the format of
// the text, and x with an item of another party in the text as base.
func (r *Run) shared(x *objects.Object, t edits.Text) (f texts.Format, base *objects.Object, ok bool) {
	if t.Before != "" {
		f, ok = texts.Grown(t.Before, t.After)
		return texts.Format(t.Flag) + f, x, ok
	}
	text, document := texts.Probe(t.After)
	if text == "" || r.Over() {
		return "", nil, false
	}
	format := document
	if format == "" {
		format = texts.Format(t.Flag + ",")
	}
	base, ok = r.Edited(x, []edits.Edit{{What: edits.Put, Path: t.Path, Value: text, Format: format}})
	if !ok {
		return "", nil, false
	}
	out := r.F(r.Fresh(), session.Query{Object: base})
	if !out.OK() {
		return "", nil, false
	}
	after, _ := edits.TextAt(out.After.Doc, t.Path, format)
	if document != "" {
		f, ok = texts.Grown(text, after)
		if !ok { // the webhook lost items, which the checks must report: it is enough that it kept some
			kept := texts.Minus(document.Items(text), texts.Minus(document.Items(text), document.Items(after)))
			f, ok = document, len(texts.Minus(kept, document.Items(t.After))) > 0
		}
		return f, base, ok
	}
	f, ok = texts.Shared(text, after)
	return texts.Format(t.Flag) + f, base, ok
}

// tryItems checks laws on a text to which both the webhook and others add items. base is like x, but another party has
// already set an item.
func (r *Run) tryItems(x, base *objects.Object, t edits.Text, f texts.Format) {
	out := r.F(r.Fresh(), session.Query{Object: base})
	if !out.OK() {
		return
	}
	both, _ := edits.TextAt(out.After.Doc, t.Path, f)
	put := func(text string) []edits.Edit {
		return []edits.Edit{{What: edits.Put, Path: t.Path, Value: text, Format: f}}
	}
	if r.uses(EqualTexts) {
		for _, other := range f.Equal(both) {
			r.try(&laws.Case{Law: laws.L4a, Object: base.Doc, Edits: put(other)})
			r.try(&laws.Case{Law: laws.L5, Object: x.Doc, Edits: put(other)})
		}
	}
	if !r.uses(ExtendedTexts) {
		return
	}
	for _, item := range r.items(t, f, both) {
		for _, front := range []bool{false, true} {
			e := edits.Edit{What: edits.Extend, Path: t.Path, Value: item, Front: front, Format: f}
			for _, object := range []*objects.Object{x, base} {
				r.try(&laws.Case{Law: laws.L4b, Object: object.Doc, Edits: []edits.Edit{e}})
			}
			r.try(&laws.Case{Law: laws.L4a, Object: base.Doc, Edits: []edits.Edit{e}})
			r.try(&laws.Case{Law: laws.L5, Object: base.Doc, Edits: []edits.Edit{e}})
		}
	}
	if own := f.Items(t.After); len(own) > 0 && !f.IsDocument() { // a webhook may keep only the first items
		many := t.Before
		for n := range manyItems {
			many = f.With(many, texts.Token(own[len(own)-1], n+2), false)
		}
		r.try(&laws.Case{Law: laws.L5, Object: x.Doc, Edits: put(many)})
	}
	for _, own := range few(texts.Minus(f.Items(t.After), f.Items(t.Before)), 2) {
		if alike := texts.Alike(own); alike != "" && !f.IsDocument() {
			r.try(&laws.Case{Law: laws.L5, Object: x.Doc, Edits: put(f.With(t.Before, alike, false))})
		}
	}
}

// manyItems is how many items are added to find a webhook that keeps only the first few.
const manyItems = 6

// items returns items that another party may add to a text. They have the form of the webhook's items. both is the text
// with items of both parties.
func (r *Run) items(t edits.Text, f texts.Format, both string) []string {
	if f.IsDocument() {
		return []string{texts.Fragment(f, t.After, false), texts.Fragment(f, t.After, true)}
	}
	own := f.Items(t.After)
	if len(own) == 0 {
		return nil
	}
	item := texts.Token(own[len(own)-1], 0)
	if f.Lost([]string{item}, both) == "" {
		item = texts.Token(own[len(own)-1], 2)
	}
	return []string{item}
}
