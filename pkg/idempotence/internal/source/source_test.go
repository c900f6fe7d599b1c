// SPDX-License-Identifier: Apache-2.0

package source

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	keyDomain = "source.example.com/"
	keyMode   = keyDomain + "mode"
)

type hook struct{ inner http.HandlerFunc }

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	annotations := map[string]string{}
	if annotations[keyMode] != "strict" || annotations["source.example.com/port"] == "" {
		return
	}
	switch annotations[keyDomain+"level"] { //nolint:gocritic // the test reads this statement
	case "high":
		farther(w)
	}
	zone, ok := annotations["source.example.com/zone"]
	if ok && strings.ToLower(zone) == "west" || sizes[annotations["source.example.com/size"]] > 1 ||
		strings.HasPrefix(annotations["source.example.com/image"], "mirror/") || slices.Contains([]string{"a", "b"}, zone) ||
		at(annotations, "labels", "team") != "shop" {
		return
	}
	h.inner(w, r)
}

var sizes = map[string]int{"small": 1, "large": 2}

func at(from map[string]string, path ...string) string { return from[strings.Join(path, ".")] }

func farther(w http.ResponseWriter) { w.Header().Set("X-Of-Farther", "text of farther") }

// unreached is not part of the hook.
func unreached() string { return "text of unreached" }

func newHook() http.Handler {
	return &hook{func(http.ResponseWriter, *http.Request) { _ = "text of a field" }}
}

func TestOf(t *testing.T) {
	texts := Of(newHook)
	for _, p := range []Pair{
		{keyMode, "strict"}, {"source.example.com/level", "high"}, {"source.example.com/zone", "west"}, {"source.example.com/zone", "b"},
		{"source.example.com/size", "large"}, {"source.example.com/image", "mirror/"}, {"team", "shop"},
	} {
		if !slices.Contains(texts.Pairs, p) {
			t.Errorf("no pair %v: %v", p, texts.Pairs)
		}
	}
	for _, key := range []string{keyMode, "source.example.com/port", "team"} {
		if !slices.Contains(texts.Keys, key) {
			t.Errorf("no key %q: %q", key, texts.Keys)
		}
	}
	for _, text := range []string{"source.example.com/port", "text of farther", "text of a field"} {
		if !slices.Contains(texts.All, text) {
			t.Errorf("no text %q: %q", text, texts.All)
		}
	}
	if slices.Contains(texts.All, unreached()) {
		t.Errorf("a text of a function that the hook does not call: %q", texts.All)
	}
}

func TestOfFailingHandler(t *testing.T) {
	for _, newHandler := range []func() http.Handler{nil, func() http.Handler { return nil }, func() http.Handler { panic("no handler") }} {
		_ = Of(newHandler) // does not panic
	}
}
