// SPDX-License-Identifier: Apache-2.0

// Package texts recognises structure inside strings, such as lists, JSON documents and quantities. It adds items to
// such texts, and writes them in other forms with the same meaning.
package texts

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Format says how a text is divided into items. It is one of the constants, or a separator such as ",". A Format that
// begins with "-" is for one argument in a list of arguments: a flag with its equals sign, followed by the separator of
// its items.
type Format string

// The formats that are not separators.
const (
	JSON     Format = "json"
	YAML     Format = "yaml"
	Quantity Format = "quantity"
	Duration Format = "duration"
	Image    Format = "image"
)

// separators are the known separators of items. A later one may occur inside the items of an earlier one.
var separators = []string{"\n", ";", ",", "|", " ", ":"}

// IsList reports whether a text in the format has items.
func (f Format) IsList() bool { return f != "" && f != Quantity && f != Duration && f != Image }

// IsDocument reports whether a text in the format is a document.
func (f Format) IsDocument() bool { return f == JSON || f == YAML }

// Flag returns the flag of an argument with its equals sign, or "".
func (f Format) Flag() string {
	if !strings.HasPrefix(string(f), "-") {
		return ""
	}
	return string(f[:strings.LastIndex(string(f), "=")+1])
}

func (f Format) separator() string { return strings.TrimPrefix(string(f), f.Flag()) }

// Items returns the items of a text without blanks around them. For a document, these are the keys of its maps and the
// identities of its list elements, each with its path.
func (f Format) Items(text string) (items []string) {
	if f.IsDocument() {
		doc, ok := f.parse(text)
		if !ok {
			return nil
		}
		return documentItems(nil, doc)
	}
	for item := range strings.SplitSeq(text, f.separator()) {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func documentItems(p tree.Path, doc any) (items []string) {
	switch doc := doc.(type) {
	case map[string]any:
		for name, inner := range doc {
			at := p.Member(name)
			items = append(append(items, at.String()), documentItems(at, inner)...)
		}
	case []any:
		for _, element := range doc {
			at := p.Element(tree.Identity(p, element), 0)
			items = append(append(items, at.String()), documentItems(at, element)...)
		}
	}
	slices.Sort(items)
	return items
}

func (f Format) parse(text string) (any, bool) {
	raw := []byte(text)
	if f == YAML {
		var err error
		if raw, err = yaml.YAMLToJSON(raw); err != nil {
			return nil, false
		}
	}
	doc, err := tree.Decode(raw)
	return doc, err == nil
}

// With returns the text with an item added at its end or front. For a document, item is a document with further list
// elements and members.
func (f Format) With(text, item string, front bool) string {
	if f.IsDocument() {
		fragment, _ := JSON.parse(item)
		doc, ok := f.parse(text)
		if !ok || doc == nil {
			return f.write(fragment)
		}
		return f.write(merged(doc, fragment, front))
	}
	body := strings.TrimRight(text, "\n")
	end := text[len(body):]
	switch {
	case strings.TrimSpace(body) == "":
		return item + end
	case front:
		return item + f.separator() + text
	}
	return body + f.separator() + item + end
}

func (f Format) write(doc any) string {
	if f == YAML {
		if text, err := yaml.JSONToYAML(tree.Encode(doc)); err == nil {
			return string(text)
		}
	}
	return string(tree.Encode(doc))
}

// merged returns a document with the members and list elements of another one added. It replaces no value.
func merged(doc, more any, front bool) any {
	switch doc := doc.(type) {
	case map[string]any:
		members, _ := more.(map[string]any)
		out := tree.Clone(doc).(map[string]any)
		for name, value := range members {
			if inner, ok := out[name]; ok {
				value = merged(inner, value, front)
			}
			out[name] = value
		}
		return out
	case []any:
		elements, _ := more.([]any)
		if front {
			return slices.Concat(elements, doc)
		}
		return slices.Concat(doc, elements)
	}
	return doc
}

// Lost returns the first of the items that a text lacks, or "".
func (f Format) Lost(items []string, text string) string {
	there := f.Items(text)
	for _, item := range items {
		if !slices.Contains(there, item) {
			return item
		}
	}
	return ""
}

// Repeated returns an item that after has several times, and more often than before, or "". An item that before lacks
// counts as if it were there once.
func (f Format) Repeated(before, after string) string {
	if !f.IsList() {
		return ""
	}
	old, items := f.Items(before), f.Items(after)
	for _, item := range items {
		if n := count(items, item); n > 1 && n > count(old, item) {
			return item
		}
	}
	return ""
}

func count(items []string, item string) (n int) {
	for _, other := range items {
		if other == item {
			n++
		}
	}
	return n
}

// Minus returns the items that others lacks.
func Minus(items, others []string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool { return slices.Contains(others, item) })
}
