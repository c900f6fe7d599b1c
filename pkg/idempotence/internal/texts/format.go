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

// A Format is the format of a text: one of the constants, or the separator of a list of items, such as ",". For an
// argument, the Format is the flag, an equals sign and the format of its value, such as "--features=,".
type Format string

// The formats that are not separators.
const (
	JSON     Format = "json"
	YAML     Format = "yaml"
	Quantity Format = "quantity"
	Duration Format = "duration"
	Image    Format = "image"
	// Networks is the format of the annotation with the networks of a Pod (NetworksAnnotation).
	Networks Format = "networks"
	// Query is the format of a URL. Its items are the parameters of the query.
	Query Format = "query"
)

// separators are the known separators of items. A text with several of them is divided at the first one in this order.
var separators = []string{"\n", ";", ",", "|", " ", ":"}

// IsList reports whether the format has items: it is a list or a document.
func (f Format) IsList() bool {
	kind := f.kind()
	return kind != "" && kind != Quantity && kind != Duration && kind != Image && kind != Networks
}

// IsDocument reports whether the format is JSON or YAML.
func (f Format) IsDocument() bool { return f.kind() == JSON || f.kind() == YAML }

// Flag returns the flag with its equals sign, such as "--features=", or "" if the format is not for an argument.
func (f Format) Flag() string {
	if !strings.HasPrefix(string(f), "-") {
		return ""
	}
	return string(f[:strings.LastIndex(string(f), "=")+1])
}

// kind returns the format without the flag.
func (f Format) kind() Format { return Format(strings.TrimPrefix(string(f), f.Flag())) }

// Items returns the items of a text, without the blanks around them. The items of a document are the paths of its
// members and list elements.
func (f Format) Items(text string) (items []string) {
	if f.IsDocument() {
		doc, ok := f.parse(text)
		if !ok {
			return nil
		}
		return documentItems(nil, doc)
	}
	if f.kind() == Query {
		_, query, _ := strings.Cut(text, "?")
		// A second question mark is a mistake of the webhook that added a parameter.
		return strings.FieldsFunc(query, func(c rune) bool { return c == '?' || c == '&' })
	}
	for item := range strings.SplitSeq(text, string(f.kind())) {
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
	if f.kind() == YAML {
		var err error
		if raw, err = yaml.YAMLToJSON(raw); err != nil {
			return nil, false
		}
	}
	doc, err := tree.Decode(raw)
	return doc, err == nil
}

// With returns the text with an item added at the end, or at the front if front is set. For a document, item is a JSON
// document whose members and list elements are added.
func (f Format) With(text, item string, front bool) string {
	if f.IsDocument() {
		fragment, _ := JSON.parse(item)
		doc, ok := f.parse(text)
		if !ok || doc == nil {
			return f.write(fragment)
		}
		return f.write(merged(doc, fragment, front))
	}
	if f.kind() == Query {
		return withParameter(text, item, front)
	}
	body := strings.TrimRight(text, "\n")
	end := text[len(body):]
	switch {
	case strings.TrimSpace(body) == "":
		return item + end
	case front:
		return item + string(f.kind()) + text
	}
	return body + string(f.kind()) + item + end
}

// withParameter returns a URL with a parameter added to its query.
func withParameter(url, parameter string, front bool) string {
	base, query, found := strings.Cut(url, "?")
	switch {
	case !found || query == "":
		return base + "?" + parameter
	case front:
		return base + "?" + parameter + "&" + query
	}
	return url + "&" + parameter
}

func (f Format) write(doc any) string {
	if f.kind() == YAML {
		if text, err := yaml.JSONToYAML(tree.Encode(doc)); err == nil {
			return string(text)
		}
	}
	return string(tree.Encode(doc))
}

// merged returns doc with the members and list elements of more. It replaces no value of doc.
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

// Lost returns the first of the given items that a text lacks, or "" if the text has all of them.
func (f Format) Lost(items []string, text string) string {
	there := f.Items(text)
	for _, item := range items {
		if !slices.Contains(there, item) {
			return item
		}
	}
	return ""
}

// Repeated returns an item that is several times in after, and more often than in before. It returns "" if there is
// none.
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

// Minus returns the items that are not in others.
func Minus(items, others []string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool { return slices.Contains(others, item) })
}
