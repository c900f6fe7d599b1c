// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/texts"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// TextAt returns the text at a path of a document, or false if there is none. If the format is for an argument, the
// path leads to the list of arguments, and the text is the part of the argument after the flag.
func TextAt(doc any, p tree.Path, f texts.Format) (string, bool) {
	value, _ := tree.Get(doc, p)
	flag := f.Flag()
	if flag == "" {
		text, ok := value.(string)
		return text, ok
	}
	list, _ := value.([]any)
	if i := indexOfFlag(list, flag); i >= 0 {
		return strings.TrimPrefix(list[i].(string), flag), true
	}
	return "", false
}

func indexOfFlag(list []any, flag string) int {
	return slices.IndexFunc(list, func(e any) bool {
		text, ok := e.(string)
		return ok && strings.HasPrefix(text, flag)
	})
}

// inText applies an edit whose Format is set. It returns false if the value at the path is not a text.
func (e Edit) inText(doc any) (any, bool) {
	text, ok := e.Value.(string)
	if !ok {
		return nil, false
	}
	if e.What == Extend {
		before, _ := TextAt(doc, e.Path, e.Format)
		text = e.Format.With(before, text, e.Front)
	}
	if flag := e.Format.Flag(); flag != "" {
		value, _ := tree.Get(doc, e.Path)
		list, _ := value.([]any)
		list = slices.Clone(list)
		if i := indexOfFlag(list, flag); i >= 0 {
			list[i] = flag + text
		} else {
			list = append(list, flag+text)
		}
		return tree.Put(doc, e.Path, list)
	}
	if there, ok := tree.Get(doc, e.Path); ok {
		if _, isText := there.(string); !isText {
			return nil, false
		}
	}
	if out, ok := tree.Put(doc, e.Path, text); ok {
		return out, true
	}
	n := len(e.Path)
	if n < 3 || !e.Path[n-2].Element || tree.Has(doc, e.Path[:n-1]) {
		return nil, false
	}
	name, ok := strings.CutPrefix(e.Path[n-2].Key, "name=") // the variable is missing: add it
	if !ok {
		return nil, false
	}
	return tree.Insert(doc, e.Path[:n-2], -1, map[string]any{"name": name, e.Path[n-1].Name: text})
}

// A Text is a text in an object, and what a webhook has made of it. After is empty for a text of the user.
type Text struct {
	Path          tree.Path
	Before, After string
	// Flag is set if the text is an argument. The path then leads to the list of arguments.
	Flag string
}

// mostTexts is the maximum number of texts that WrittenTexts returns.
const mostTexts = 4

// WrittenTexts returns the texts that a webhook has written into annotations, variables, arguments and data of x,
// according to changes. If custom is set, x is a custom resource, and all texts outside of its metadata count. If
// several containers have equal texts, WrittenTexts returns the first.
func WrittenTexts(x any, changes []tree.Change, custom bool) (all []Text) {
	seen := map[string]bool{}
	add := func(t Text) {
		key := t.Flag + " " + t.After
		for _, s := range t.Path {
			if !s.Element || !strings.HasPrefix(s.Key, "name=") {
				key += "." + s.Name
			}
		}
		if t.After != "" && !seen[key] && len(all) < mostTexts {
			seen[key] = true
			all = append(all, t)
		}
	}
	for _, c := range changes {
		tree.Leaves(c.New, func(p tree.Path, value any) {
			at := slices.Concat(c.Path, p)
			text, ok := value.(string)
			switch {
			case !ok || c.Kind != tree.Added && c.Kind != tree.Replaced || isIdentity(at):
			case isArgument(at):
				if flag, rest, ok := strings.Cut(text, "="); ok && strings.HasPrefix(flag, "-") {
					list := at[:len(at)-1]
					before, _ := TextAt(x, list, texts.Format(flag+"=,"))
					add(Text{Path: list, Before: before, After: rest, Flag: flag + "="})
				}
			case holdsText(at) || custom && at[0].Name != "metadata":
				before, _ := tree.Get(x, at)
				old, _ := before.(string)
				add(Text{Path: at, Before: old, After: text})
			}
		})
	}
	return all
}

func isArgument(p tree.Path) bool {
	return p[len(p)-1].Element && (p.Last() == "args" || p.Last() == "command")
}

// holdsText reports whether the API allows any text at a path: it is an annotation, the value of a variable, or an
// entry of the data of a ConfigMap or Secret.
func holdsText(p tree.Path) bool {
	n := len(p)
	if n < 2 || p[n-1].Element {
		return false
	}
	switch above := p[n-2]; {
	case p[n-1].Name == "value" && above.Element:
		return n > 2 && p[n-3].Name == "env"
	default:
		return above.Name == "annotations" || above.Name == "data" || above.Name == "stringData"
	}
}

// UserTexts returns the texts in a document that another party may write in another form: annotations, variables, data
// and images. If custom is set, doc is a custom resource, and all texts outside of its metadata count.
func UserTexts(doc any, custom bool) (all []Text) {
	tree.Leaves(doc, func(p tree.Path, value any) {
		text, ok := value.(string)
		if ok && text != "" && !isIdentity(p) && (holdsText(p) || p.Last() == "image" || custom && p[0].Name != "metadata") {
			all = append(all, Text{Path: slices.Clone(p), Before: text})
		}
	})
	return all
}

// Formats returns the formats of text, or nil if none is known. A list must have at least two items.
func (t Text) Formats(text string) (formats []texts.Format) {
	if f, ok := texts.Document(text); ok {
		return []texts.Format{f}
	}
	if f, ok := texts.Scalar(t.name(), text); ok {
		return []texts.Format{f}
	}
	if t.name() == texts.NetworksAnnotation {
		formats = append(formats, texts.Networks)
	}
	for _, f := range []texts.Format{",", ";", " "} {
		if len(f.Items(text)) > 1 {
			return append(formats, f)
		}
	}
	return formats
}

// name returns the name of the field, variable or annotation that has the text.
func (t Text) name() string {
	last := t.Path[len(t.Path)-1]
	if last.Name == "value" && len(t.Path) > 1 && t.Path[len(t.Path)-2].Element {
		return t.Path[len(t.Path)-2].Key
	}
	return last.Name
}

// OtherForms returns edits that write text, the value of t, in other forms with the same meaning.
func (t Text) OtherForms(text string) (edits []Edit) {
	for _, f := range t.Formats(text) {
		for _, other := range f.Equal(text) {
			edits = append(edits, Edit{What: Put, Path: t.Path, Value: other, Format: f})
		}
	}
	return edits
}
