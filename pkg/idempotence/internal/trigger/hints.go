// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Hints are names and values that may switch a webhook on. The likeliest ones come first in each list.
type Hints struct {
	Pairs  []Pair   // keys of labels or annotations, with their values
	Keys   []string // of labels or annotations, also those in Pairs
	Values []string // of any of the keys
	Words  []string // possible names of objects, containers, registries and variables

	domains, nameWords []string // see Guesses
}

// A Pair is the key and the value of a label or annotation.
type Pair struct{ Key, Value string }

// The maximum lengths of the lists in Hints.
const (
	mostKeys   = 150
	mostValues = 24
	mostWords  = 60
)

// appendNew appends v, unless the list has it or has reached the length most.
func appendNew[T comparable](list []T, most int, v T) []T {
	if len(list) >= most || slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// AddPair adds a pair, and its key to the keys. It ignores a text that cannot be a key.
func (h *Hints) AddPair(key, value string) {
	if IsKey(key) {
		h.Pairs = appendNew(h.Pairs, mostKeys, Pair{key, value})
		h.Keys = appendNew(h.Keys, mostKeys, key)
	}
}

// AddText adds a text. A text with the form of a qualified key becomes a key and a word. A domain with a slash, such as
// "example.com/", becomes a domain. Any other text without blanks becomes a value and a word.
func (h *Hints) AddText(text string) {
	switch {
	case text == "" || len(text) > 253 || strings.ContainsAny(text, "\n%") || notKey().MatchString(text):
	case IsKey(text) && (strings.Contains(text, "/") || strings.Count(text, ".") > 1):
		h.Keys = appendNew(h.Keys, mostKeys, text)
		h.Words = appendNew(h.Words, mostWords, text)
	case strings.HasSuffix(text, "/") && IsKey(text+"inject"):
		h.AddDomain(strings.TrimSuffix(text, "/"))
	case !strings.Contains(text, " "):
		h.Values = appendNew(h.Values, mostValues, text)
		h.Words = appendNew(h.Words, mostWords, text)
	}
}

// notKey matches media types, and API versions such as apps/v1, which have the form of a key.
var notKey = lazy(`^(application|text)/|/v[0-9]+((alpha|beta)[0-9]+)?$`)

// AddKey adds the key of a label or annotation.
func (h *Hints) AddKey(key string) {
	if IsKey(key) {
		h.Keys = appendNew(h.Keys, mostKeys, key)
	}
}

// IsKey reports whether a text can be the key of a label or annotation.
func IsKey(text string) bool { return len(validation.IsQualifiedName(text)) == 0 }

var (
	quoted = lazy(`'([^'\n]{1,253})'|"([^"\n]{1,253})"`)
	// compared matches the comparison of a map entry with a text, such as ['example.com/inject'] == 'true'.
	compared = lazy(`\[\??['"]([^'"]+)['"]\](?:\.orValue\([^)]*\))?\s*(?:==|!=)\s*['"]([^'"]*)['"]`)
	// qualified matches keys with a domain, such as example.com/inject, in a sentence.
	qualified = lazy(`[a-z0-9][a-z0-9.-]*\.[a-z]+/[A-Za-z0-9._-]*[A-Za-z0-9]`)
	// assigned matches a key and its value in a sentence, such as example.com/inject must be "true".
	assigned = lazy(`([a-z0-9][a-z0-9.-]*/[A-Za-z0-9._-]*[A-Za-z0-9])["']?\s*(?:=|:|to|is|must be|should be)\s*["']?([A-Za-z0-9._-]+)`)
)

// AddExpression adds the texts in the CEL expression of a matchCondition.
func (h *Hints) AddExpression(expression string) {
	for _, m := range compared().FindAllStringSubmatch(expression, -1) {
		h.AddPair(m[1], m[2])
	}
	for _, m := range quoted().FindAllStringSubmatch(expression, -1) {
		h.AddText(m[1] + m[2])
	}
	for _, m := range bare().FindAllStringSubmatch(expression, -1) {
		h.Keys = appendNew(h.Keys, mostKeys, m[1]+m[2])
	}
}

// bare matches keys without a domain in an expression, such as object.metadata.labels.team or "team" in labels.
var bare = lazy(`(?:labels|annotations)(?:\.\??|\[\??['"])([A-Za-z0-9][A-Za-z0-9_./-]*)|['"]([A-Za-z0-9_./-]+)['"]\s+in\s`)

var (
	// labelled and label match a key without a domain in a sentence, such as label "team" or the team label.
	labelled = lazy(`(?:labels?|annotations?) ["'` + "`" + `]?([A-Za-z0-9][A-Za-z0-9._-]*)`)
	label    = lazy(`([A-Za-z0-9][A-Za-z0-9._-]*)["'` + "`" + `]? (?:label|annotation)`)
	// listed matches the values in a sentence such as must be one of gold, silver or bronze.
	listed = lazy(`(?:one of|either|supported|allowed|valid|expected|want|must be|should be)(?: values| are| is)*:? *\[?([A-Za-z0-9._-]+(?:(?: or | and | ?[,|/] ?(?:or )?| )[A-Za-z0-9._-]+)*)`)
	// between separates the values of listed.
	between = lazy(` or | and |[ ,|/]+`)
)

// unlikely are words of a sentence that are neither keys nor values, although they stand where these do.
var unlikely = []string{
	"a", "an", "the", "one", "is", "are", "be", "of", "on", "in", "with", "without", "for", "and", "or", "no", "not", "must", "should", "missing", "required",
	"needs", "has", "have", "to", "this", "that", "its", "set", "invalid", "unknown", "value", "key",
}

// AddMessage adds the keys and values in a denial or warning of the webhook.
func (h *Hints) AddMessage(text string) {
	for _, m := range append(labelled().FindAllStringSubmatch(text, -1), label().FindAllStringSubmatch(text, -1)...) {
		if key := m[1]; !slices.Contains(unlikely, strings.ToLower(key)) {
			h.AddKey(key)
		}
	}
	for _, m := range listed().FindAllStringSubmatch(text, -1) {
		for _, value := range between().Split(m[1], -1) {
			if value != "" && !slices.Contains(unlikely, value) {
				h.Values = appendNew(h.Values, mostValues, value)
			}
		}
	}
	for _, m := range assigned().FindAllStringSubmatch(text, -1) {
		h.AddPair(m[1], m[2])
	}
	for _, key := range qualified().FindAllString(text, -1) {
		h.AddText(key)
	}
	for _, m := range quoted().FindAllStringSubmatch(text, -1) {
		h.AddText(m[1] + m[2])
	}
}

// IsOff reports whether a key usually switches a webhook off.
func IsOff(key string) bool {
	for _, word := range []string{"skip", "disable", "ignore", "exclude", "opt-out", "optout", "bypass"} {
		if strings.Contains(strings.ToLower(key), word) {
			return true
		}
	}
	return false
}

// lazy compiles an expression when it is first used, so that programs that link the harness start quickly.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
