// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/build"
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

// TestIsOwn checks that the package decides whether a function is part of the webhook, and not the folder of its file.
func TestIsOwn(t *testing.T) {
	for _, c := range []struct {
		function, file string
		want           bool
	}{
		{"example.com/hooks.(*Defaulter).Default", "/src/k8s.io/hooks/pod.go", true},
		{"main.serve", "/src/admitkit/pkg/main.go", true},
		{"github.com/admitkit/admitkit/pkg/webhook.(*Hook).ServeHTTP", "/src/anywhere/pkg/webhook/serve.go", false},
		{"github.com/admitkit/admitkit/pkg/webhook.(*Hook).ServeHTTP", "/go/pkg/mod/github.com/admitkit/admitkit@v0.1.0/pkg/webhook/serve.go", false},
		{"github.com/admitkit/admitkit/pkg/webhook_test.add", "/src/admitkit/pkg/webhook/hook_test.go", true},
		{"github.com/admitkit/admitkit/examples/sidecar-injector.inject", "/src/admitkit/examples/sidecar-injector/inject.go", true},
		{"sigs.k8s.io/controller-runtime/pkg/webhook/admission.(*Webhook).Handle", "/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.24.1/pkg/webhook/admission/webhook.go", false},
		{"net/http.HandlerFunc.ServeHTTP", build.Default.GOROOT + "/src/net/http/server.go", false},
	} {
		if got := isOwn(c.function, c.file); got != c.want {
			t.Errorf("%s in %s: %t", c.function, c.file, got)
		}
	}
}
