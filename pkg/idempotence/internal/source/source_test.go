// SPDX-License-Identifier: Apache-2.0

package source

import (
	"net/http"
	"slices"
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
	h.inner(w, r)
}

func farther(w http.ResponseWriter) { w.Header().Set("X-Of-Farther", "text of farther") }

// unreached is not part of the hook.
func unreached() string { return "text of unreached" }

func newHook() http.Handler {
	return &hook{func(http.ResponseWriter, *http.Request) { _ = "text of a field" }}
}

func TestOf(t *testing.T) {
	texts := Of(newHook)
	for _, p := range []Pair{{keyMode, "strict"}, {"source.example.com/level", "high"}} {
		if !slices.Contains(texts.Pairs, p) {
			t.Errorf("no pair %v: %v", p, texts.Pairs)
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
