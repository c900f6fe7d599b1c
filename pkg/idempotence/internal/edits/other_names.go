// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// OtherNames returns edits of doc by another party that writes the names of the webhook's flags and HTTP headers in another
// form with the same meaning: --flag=value in two words, and headers in lower case. changes are those of the webhook.
func OtherNames(doc any, changes []tree.Change) (list []Edit) {
	seen := map[string]bool{}
	add := func(e Edit) {
		if key := e.Path.String(); !seen[key] && len(list) < mostTexts {
			seen[key] = true
			list = append(list, e)
		}
	}
	for _, c := range changes {
		if c.Kind != tree.Added && c.Kind != tree.Replaced {
			continue
		}
		tree.Leaves(c.New, func(p tree.Path, value any) {
			at := slices.Concat(c.Path, p)
			text, ok := value.(string)
			switch {
			case !ok:
			case isArgument(at):
				if words, ok := inTwoWords(doc, at[:len(at)-1], text); ok {
					add(Edit{What: Put, Path: at[:len(at)-1], Value: words})
				}
			case isHeaderName(at) && strings.ToLower(text) != text:
				add(Edit{What: Put, Path: at, Value: strings.ToLower(text)})
			}
		})
	}
	return list
}

// IsOtherName reports whether an edit can be one of OtherNames: it sets a list of arguments, or the name of a header.
func IsOtherName(e Edit) bool {
	_, isList := e.Value.([]any)
	return e.What == Put && (isList && (e.Path.Last() == "args" || e.Path.Last() == "command") || isHeaderName(e.Path))
}

// inTwoWords returns a list of arguments in which a flag such as --level=info is divided into two words.
func inTwoWords(doc any, list tree.Path, argument string) ([]any, bool) {
	flag, rest, ok := strings.Cut(argument, "=")
	value, _ := tree.Get(doc, list)
	words, _ := value.([]any)
	i := slices.IndexFunc(words, func(w any) bool { return w == argument })
	if !ok || !isLongFlag(flag) || i < 0 {
		return nil, false
	}
	return slices.Replace(slices.Clone(words), i, i+1, any(flag), any(rest)), true
}

func isLongFlag(word string) bool { return strings.HasPrefix(word, "--") && len(word) > 2 }

// isHeaderName reports whether a path leads to the name of an HTTP header, such as httpHeaders[name=Accept].name. The
// names have no case (RFC 9110, section 5.1).
func isHeaderName(p tree.Path) bool {
	n := len(p)
	return n > 2 && p[n-1].Name == "name" && !p[n-1].Element && p[n-2].Element && isOfHeaders(p[:n-2])
}

func isOfHeaders(list tree.Path) bool {
	return slices.ContainsFunc(list, func(s tree.Step) bool { return !s.Element && strings.Contains(strings.ToLower(s.Name), "header") })
}

// A NameUsed is a flag or an HTTP header of a list, and how often the list has it.
type NameUsed struct {
	Path  tree.Path // of the list
	Name  string
	Count int
}

// NamesUsed returns the flags in all lists of arguments, and the headers in all lists of HTTP headers. The keys of the map
// identify a list and a name, in any form.
func NamesUsed(doc any) map[string]NameUsed {
	used := map[string]NameUsed{}
	count := func(list tree.Path, name string) {
		key := list.String() + " " + strings.ToLower(name)
		used[key] = NameUsed{list, name, used[key].Count + 1}
	}
	tree.Lists(doc, func(list tree.Path, elements []any) {
		for _, e := range elements {
			switch e := e.(type) {
			case string:
				if flag, _, _ := strings.Cut(e, "="); isLongFlag(flag) && (list.Last() == "args" || list.Last() == "command") {
					count(list, flag)
				}
			case map[string]any:
				if name, ok := e["name"].(string); ok && isOfHeaders(list) {
					count(list, name)
				}
			}
		}
	})
	return used
}

// OtherNumber returns a number other than a given one. It returns false if the value is no number, or 0.
func OtherNumber(value any) (other any, ok bool) {
	switch n := value.(type) {
	case int64:
		return n + 1, n > 0
	case float64:
		return n + 1, n > 0
	}
	return nil, false
}

// ZerosThere returns edits that set to 0 each number which a webhook adds, outside of list elements and metadata.
func ZerosThere(changes []tree.Change) (list []Edit) {
	for _, c := range changes {
		if c.Kind != tree.Added || c.Path[0].Name == "metadata" || c.Path[0].Name == "status" {
			continue
		}
		tree.Leaves(c.New, func(p tree.Path, value any) {
			at := slices.Concat(c.Path, p)
			inNew := slices.ContainsFunc(at[len(c.Path)-1:], func(s tree.Step) bool { return s.Element })
			if _, isNumber := OtherNumber(value); isNumber && !inNew && len(list) < mostTexts {
				list = append(list, Edit{What: Put, Path: at, Value: int64(0)})
			}
		})
	}
	return list
}

// ChangedNotes returns edits that give the annotations and labels of doc, and of the Pod templates in it, other values.
func ChangedNotes(doc any) (list []Edit) {
	tree.Leaves(doc, func(p tree.Path, value any) {
		text, ok := value.(string)
		if ok && text != "" && IsNote(p) && len(list) < mostTexts {
			list = append(list, Edit{What: Put, Path: slices.Clone(p), Value: text + "2"})
		}
	})
	return list
}
