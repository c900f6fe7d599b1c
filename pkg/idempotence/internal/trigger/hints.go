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
// "example.com/", becomes usual keys of that domain. Any other text without blanks becomes a value and a word.
func (h *Hints) AddText(text string) {
	switch {
	case text == "" || len(text) > 253 || strings.ContainsAny(text, "\n%"):
	case IsKey(text) && (strings.Contains(text, "/") || strings.Count(text, ".") > 1):
		h.Keys = appendNew(h.Keys, mostKeys, text)
		h.Words = appendNew(h.Words, mostWords, text)
	case strings.HasSuffix(text, "/") && IsKey(text+"inject"):
		for _, word := range words {
			h.Keys = appendNew(h.Keys, mostKeys, text+word)
		}
	case !strings.Contains(text, " "):
		h.Values = appendNew(h.Values, mostValues, text)
		h.Words = appendNew(h.Words, mostWords, text)
	}
}

// IsKey reports whether a text can be the key of a label or annotation.
func IsKey(text string) bool { return len(validation.IsQualifiedName(text)) == 0 }

// words are usual names of labels and annotations that switch a webhook on.
var words = []string{"inject", "enabled", "enable", "injection", "sidecar", "mode", "profile", "mutate", "managed", "policy"}

// AddName adds keys that are usual for a webhook with this name, such as agent.example.com/inject.
func (h *Hints) AddName(webhook string) {
	labels := strings.Split(webhook, ".")
	for i := range max(len(labels)-1, 0) {
		domain := strings.Join(labels[i:], ".")
		if !IsKey(domain + "/x") { // a webhook without a configuration has its URL as its name
			continue
		}
		for _, word := range words {
			h.Keys = appendNew(h.Keys, mostKeys, domain+"/"+word)
		}
		if i > 0 {
			own := labels[0]
			for _, name := range []string{own, own + "-inject", "inject-" + own, own + "-enabled", own + ".inject"} {
				if IsKey(domain + "/" + name) {
					h.Keys = appendNew(h.Keys, mostKeys, domain+"/"+name)
				}
			}
		}
	}
}

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

// AddMessage adds the keys and quoted texts in a denial or warning of the webhook.
func (h *Hints) AddMessage(text string) {
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

// AddWritten adds usual keys in the domain of a key that the webhook writes.
func (h *Hints) AddWritten(key string) {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return
	}
	for _, word := range words[:4] {
		h.Keys = appendNew(h.Keys, mostKeys, domain+"/"+word)
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
