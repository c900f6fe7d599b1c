// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// OddNotes returns edits that set annotations with characters that some decoders and templates do not accept, although
// the API server does.
func OddNotes() []Edit {
	return []Edit{
		{What: Put, Path: annotations.Member("example.com/control"), Value: "tab\tnew\nline\r\x7f\u0080\ufeff"},
		{What: Put, Path: annotations.Member("example.com/quoted"), Value: "\\ \"quoted\" 'x' {{ .x }} $(X) %s"},
		{What: Put, Path: annotations.Member("example.com/unicode"), Value: "naïve ☃ 𝄞 \u2028 \U0010ffff"},
	}
}

// Variations returns edits of a sample that each remove, empty or change one value, because other objects may lack the
// sample's values. If knowsValid is false, the harness cannot validate the results, so the edits change only the name,
// labels and annotations.
func Variations(doc any, knowsValid bool) (list [][]Edit) {
	add := func(what EditKind, p tree.Path, value any) {
		list = append(list, []Edit{{What: what, Path: p, Value: value}})
	}
	for _, name := range []string{"a", "with.dots", "0-1-2-3-4-5-6-7-8-9-" + strings.Repeat("x", 43)} {
		add(Put, Metadata.Member("name"), name)
	}
	if generated, ok := generatedNameOf(doc); ok {
		list = append(list, generated)
	}
	nodes(nil, doc, func(p tree.Path, value any) {
		if isOfObject(p) || !knowsValid && !isFree(p) {
			return
		}
		add(Remove, p, nil)
		switch value := value.(type) {
		case []any:
			if len(value) > 0 {
				add(Put, p, []any{})
			}
		case Fields:
			if len(value) > 0 {
				add(Put, p, Fields{})
			}
		}
		if isFree(p) {
			for _, text := range oddTexts(value) {
				add(Put, p, text)
			}
		}
	})
	return list
}

// generatedNameOf returns edits that replace the name of a document by a generateName. It returns false if the document
// has no name.
func generatedNameOf(doc any) ([]Edit, bool) {
	name, ok := tree.Get(doc, Metadata.Member("name"))
	return []Edit{{What: Remove, Path: Metadata.Member("name")}, {What: Put, Path: Metadata.Member("generateName"), Value: fmt.Sprint(name, "-")}}, ok
}

// WithoutName returns doc with a generateName in place of its name. It returns false if the document has no name.
func WithoutName(doc any) (any, bool) {
	list, ok := generatedNameOf(doc)
	for _, e := range list {
		if ok {
			doc, ok = e.Apply(doc)
		}
	}
	return doc, ok
}

// LateNotes returns at most limit pairs of edits. The first edit of a pair removes an annotation or label of the
// document, and the second adds it again.
func LateNotes(doc any, limit int) (pairs [][2]Edit) {
	tree.Leaves(doc, func(p tree.Path, value any) {
		if IsNote(p) && !IsZero(value) && len(pairs) < limit {
			p := slices.Clone(p)
			pairs = append(pairs, [2]Edit{{What: Remove, Path: p}, {What: Put, Path: p, Value: value}})
		}
	})
	return pairs
}

// nodes calls f with each value inside a document, parents first.
func nodes(p tree.Path, value any, f func(tree.Path, any)) {
	if len(p) > 0 {
		f(slices.Clone(p), value)
	}
	switch value := value.(type) {
	case Fields:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			nodes(p.Member(name), value[name], f)
		}
	case []any:
		seen := map[string]int{}
		for _, element := range value {
			key := tree.Identity(p, element)
			nodes(p.Element(key, seen[key]), element, f)
			seen[key]++
		}
	}
}

// isOfObject reports whether the value at a path identifies the object, or is all of its metadata.
func isOfObject(p tree.Path) bool {
	switch p[0].Name {
	case "apiVersion", "kind":
		return true
	case "metadata":
		return len(p) == 1 || len(p) == 2 && slices.Contains([]string{"name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp"}, p[1].Name)
	}
	return false
}

// isFree reports whether the value at a path is that of a label or annotation, which may be any text.
func isFree(p tree.Path) bool {
	return len(p) > 1 && !p[len(p)-1].Element && (p[len(p)-2].Name == "annotations" || p[len(p)-2].Name == "labels")
}

// oddTexts returns texts that users may write by mistake, other than value.
func oddTexts(value any) []string {
	text, _ := value.(string)
	list := []string{"", "true", "false", "0", "-1", "1", "1.5", "a lot", "{", "[]", "a,b", "A", text + "0", strings.Repeat("x", 63)}
	if n, err := strconv.Atoi(text); err == nil {
		list = append(list, strconv.Itoa(n+1), "9999999999999999999")
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == text })
}
