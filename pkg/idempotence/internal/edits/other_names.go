// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// OtherSpellings returns edits of doc by another party that writes the names of the webhook's flags and HTTP headers in another
// form with the same meaning: a flag and its value in two words or in one, and headers in lower case. changes are those of the webhook.
func OtherSpellings(doc any, changes []tree.Change) (list []Edit) {
	seen := map[string]bool{}
	add := func(e Edit) {
		if key := e.Path.String(); !seen[key] && len(list) < mostTexts {
			seen[key] = true
			list = append(list, e)
		}
	}
	own := map[string]bool{} // the arguments that the webhook has written
	for _, c := range changes {
		tree.Leaves(c.New, func(p tree.Path, value any) {
			if at := slices.Concat(c.Path, p); isArgument(at) {
				own[fmt.Sprint(at[:len(at)-1], value)] = true
			}
		})
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
				list := at[:len(at)-1]
				words, ok := inTwoWords(doc, list, text)
				if !ok {
					words, ok = inOneWord(doc, list, text, own)
				}
				if ok {
					add(Edit{What: Put, Path: list, Value: words})
				}
			case isHeaderName(at) && strings.ToLower(text) != text:
				add(Edit{What: Put, Path: at, Value: strings.ToLower(text)})
			}
		})
	}
	return list
}

// IsOtherSpelling reports whether an edit can be one of OtherSpellings: it sets a list of arguments, or the name of a header.
func IsOtherSpelling(e Edit) bool {
	_, isList := e.Value.([]any)
	return e.What == Put && (isList && (e.Path.Last() == "args" || e.Path.Last() == "command") || isHeaderName(e.Path))
}

// inTwoWords returns a list of arguments in which a flag such as --level=info is divided into two words.
func inTwoWords(doc any, list tree.Path, argument string) ([]any, bool) {
	flag, rest, ok := strings.Cut(argument, "=")
	value, _ := tree.Get(doc, list)
	words, _ := value.([]any)
	i := slices.IndexFunc(words, func(w any) bool { return w == argument })
	if !ok || !isLongFlag(flag) || i < 0 || rest == "" || isBool(rest) || strings.HasPrefix(rest, "-") {
		return nil, false // the parser of a bool takes no further word
	}
	return slices.Replace(slices.Clone(words), i, i+1, any(flag), any(rest)), true
}

func isBool(text string) bool {
	_, err := strconv.ParseBool(text)
	return err == nil || slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(text))
}

// inOneWord returns a list of arguments in which a flag and its value, such as --level info, are joined by an equals sign.
// The webhook must have written both, because a word of the user after a flag may be another argument.
func inOneWord(doc any, list tree.Path, flag string, own map[string]bool) ([]any, bool) {
	value, _ := tree.Get(doc, list)
	words, _ := value.([]any)
	i := slices.Index(words, any(flag))
	if !isLongFlag(flag) || strings.Contains(flag, "=") || i < 0 || i+1 >= len(words) {
		return nil, false
	}
	rest, _ := words[i+1].(string)
	if rest == "" || strings.HasPrefix(rest, "-") || !own[fmt.Sprint(list, rest)] {
		return nil, false
	}
	return slices.Replace(slices.Clone(words), i, i+2, any(flag+"="+rest)), true
}

func isLongFlag(word string) bool { return strings.HasPrefix(word, "--") && len(word) > 2 }

// isHeaderName reports whether a path leads to the name of an HTTP header, such as httpHeaders[name=Accept].name. Header
// names are case-insensitive (RFC 9110, section 5.1).
func isHeaderName(p tree.Path) bool {
	n := len(p)
	return n > 2 && p[n-1].Name == "name" && !p[n-1].Element && p[n-2].Element && isHeaderList(p[:n-2])
}

// isHeaderList reports whether a path leads to a list of headers.
func isHeaderList(list tree.Path) bool {
	return !list[len(list)-1].Element && (list.Last() == "headers" || IsHTTPHeaderList(list))
}

// IsHTTPHeaderList reports whether a path leads to a list of headers that are surely HTTP headers, which are case-insensitive.
func IsHTTPHeaderList(list tree.Path) bool {
	return slices.Contains([]string{"httpheaders", "requestheaders", "responseheaders", "setheaders", "addheaders"}, strings.ToLower(list.Last()))
}

// A NameCount is a flag or HTTP header in a list, and the number of times that the list contains it.
type NameCount struct {
	Path  tree.Path // of the list
	Name  string
	Count int
}

// CountNames returns the flags in all lists of arguments, and the headers in all lists of HTTP headers. The keys of the map
// identify a list and a name, in any form.
func CountNames(doc any) map[string]NameCount {
	used := map[string]NameCount{}
	count := func(list tree.Path, name string) {
		key := list.String() + " " + strings.ToLower(name)
		used[key] = NameCount{list, name, used[key].Count + 1}
	}
	tree.Lists(doc, func(list tree.Path, elements []any) {
		for _, e := range elements {
			switch e := e.(type) {
			case string:
				if flag, _, _ := strings.Cut(e, "="); isLongFlag(flag) && (list.Last() == "args" || list.Last() == "command") {
					count(list, flag)
				}
			case map[string]any:
				if name, ok := e["name"].(string); ok && isHeaderList(list) {
					count(list, name)
				}
			}
		}
	})
	return used
}

// OtherValues returns two values that a user may set in place of one that a webhook sets. least is 1 if that is an integer
// above 1, and nil otherwise. other is larger by one, or the text with a 2 after it. ok is false for zero, negative and
// empty values, and for other types.
func OtherValues(value any) (least, other any, ok bool) {
	switch v := value.(type) {
	case int64:
		if v > 1 {
			least = int64(1)
		}
		return least, v + 1, v > 0
	case float64:
		return nil, v + 1, v > 0
	case string:
		return nil, v + "2", v != ""
	}
	return nil, nil, false
}

// ExplicitZeros returns one edit for each number or text that the webhook adds: the edit sets it to its zero value. It
// skips metadata, status, and list elements that the webhook adds.
func ExplicitZeros(changes []tree.Change) (list []Edit) {
	for _, c := range changes {
		if c.Kind != tree.Added || c.Path[0].Name == "metadata" || c.Path[0].Name == "status" {
			continue
		}
		tree.Leaves(c.New, func(p tree.Path, value any) {
			at := slices.Concat(c.Path, p)
			inNew := slices.ContainsFunc(at[len(c.Path)-1:], func(s tree.Step) bool { return s.Element })
			if _, _, ok := OtherValues(value); !ok || inNew || IsNote(at) || len(list) >= mostTexts {
				return
			}
			zero := any(int64(0))
			if _, isText := value.(string); isText {
				zero = ""
			}
			list = append(list, Edit{What: Put, Path: at, Value: zero})
		})
	}
	return list
}
