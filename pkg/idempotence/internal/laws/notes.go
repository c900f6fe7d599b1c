// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Annotations can have any text. A webhook that copies one into another field leaves it to the API server to check the
// text.

// isFromNote reports whether a problem is about a value that is an annotation of the object that was sent or of its
// namespace, or a part of one. set is false if the result has no value. An empty annotation can be the source of that,
// because encoders leave out empty texts, and of a zero. The problem must disappear with the annotation, unless it is one
// of the namespace.
func (t *Trial) isFromNote(problem string, sent, value any, set bool) bool {
	text := fmt.Sprint(value)
	isEmpty := (!set || edits.IsZero(value)) && strings.Contains(problem, ": Required value")
	if !set && !isEmpty {
		return false
	}
	isSource := func(note string) bool { return isEmpty && note == "" || set && hasWord(note, text) }
	if t.Session != nil && slices.ContainsFunc(t.notesOfNamespace(sent), isSource) {
		return true
	}
	var sources []tree.Path
	isWhole := false
	tree.Leaves(sent, func(p tree.Path, value any) {
		if note, ok := value.(string); ok && len(p) > 1 && p[len(p)-2].Name == "annotations" && isSource(note) {
			sources, isWhole = append(sources, p), isWhole || set && note == text
		}
	})
	return isWhole || len(sources) > 0 && t.needsAll(problem, sent, sources)
}

// needsAll reports whether the API server does not name a problem of the same field for the result without the parts of
// an object.
func (t *Trial) needsAll(problem string, sent any, parts []tree.Path) bool {
	if t.Session == nil {
		return true
	}
	doc := sent
	for _, p := range parts {
		next, ok := tree.Remove(doc, p)
		if !ok {
			return false
		}
		doc = next
	}
	x, ok := t.Valid(doc)
	if !ok {
		return false
	}
	out := t.F(t.Fresh(), session.Query{Object: x})
	return out.OK() && !slices.ContainsFunc(t.Kind.Problems(out.After), func(p string) bool {
		return session.FieldOf(p) == session.FieldOf(problem)
	})
}

// hasWord reports whether a text has a word, or several, with no letter or digit before and after them.
func hasWord(text, word string) bool {
	if word == "" {
		return text == ""
	}
	for i := 0; ; {
		at := strings.Index(text[i:], word)
		if at < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(word):])
		if !isWordRune(before) && !isWordRune(after) {
			return true
		}
		i++
	}
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// notesOfNamespace returns the annotations of the declared namespace of an object.
func (t *Trial) notesOfNamespace(doc any) []string {
	value, _ := tree.Get(doc, tree.Path{{Name: "metadata"}, {Name: "namespace"}})
	namespace, _ := value.(string)
	return t.Namespaces.Annotations(namespace)
}
