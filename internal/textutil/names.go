// SPDX-License-Identifier: Apache-2.0

package textutil

import (
	"regexp"
	"strings"
	"sync"
)

// generatedName matches a name that the API server has generated from a prefix.
var generatedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[a-z0-9][a-z0-9.-]*-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
})

// WithoutName replaces the name of an object in a text, and generated names, by "…", so that messages about several
// objects are equal. It keeps a name without quotes that may be a word of the text.
func WithoutName(text, name string) string {
	if name != "" {
		text = strings.ReplaceAll(text, `"`+name+`"`, `"…"`)
		if strings.ContainsAny(name, "-.0123456789") {
			text = regexp.MustCompile(`(^|[^a-z0-9.-])`+regexp.QuoteMeta(name)+`($|[^a-z0-9-])`).ReplaceAllString(text, "${1}…${2}")
		}
	}
	return generatedName().ReplaceAllString(text, "…")
}
