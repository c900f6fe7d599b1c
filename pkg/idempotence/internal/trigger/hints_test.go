// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"slices"
	"strings"
	"testing"
)

func TestHints(t *testing.T) {
	h := &Hints{}
	h.AddExpression(`object.metadata.?annotations['a.example.com/inject'].orValue('') == 'enabled' && "team" in object.metadata.labels`)
	h.AddMessage(`the label cost.example.com/center must be set to "c7"`)
	if want := (Pair{"a.example.com/inject", "enabled"}); !slices.Contains(h.Pairs, want) {
		t.Errorf("pairs %v, want %v", h.Pairs, want)
	}
	for _, key := range []string{"a.example.com/inject", "team", "cost.example.com/center"} {
		if !slices.Contains(h.Keys, key) {
			t.Errorf("no key %q: %q", key, h.Keys)
		}
	}
	if !slices.Contains(h.Values, "c7") {
		t.Errorf("no value c7: %q", h.Values)
	}
}

func TestHintsOfMessages(t *testing.T) {
	for _, c := range []struct{ message, keys, values string }{
		{`the label "team" is required`, "team", "team"},
		{"missing the owner label", "owner", ""},
		{"tier must be one of gold, silver or bronze", "", "gold silver bronze"},
		{"unknown size huge: want small|large", "", "small large"},
		{"supported values: x y", "", "x y"},
		{"the annotations are invalid", "", ""},
		{"example.com/mode must be strict", "example.com/mode", "strict"},
	} {
		h := &Hints{}
		h.AddMessage(c.message)
		if keys, values := strings.Join(h.Keys, " "), strings.Join(h.Values, " "); keys != c.keys || values != c.values {
			t.Errorf("%s: keys %q, want %q; values %q, want %q", c.message, keys, c.keys, values, c.values)
		}
	}
}

// TestTextsThatAreNoKeys adds texts of Go programs that have the form of a key.
func TestTextsThatAreNoKeys(t *testing.T) {
	h := &Hints{}
	for _, text := range []string{"application/json", "text/plain", "apps/v1", "admission.k8s.io/v1beta1", "example.com/mode"} {
		h.AddText(text)
	}
	if len(h.Keys) != 1 || h.Keys[0] != "example.com/mode" {
		t.Errorf("keys %q", h.Keys)
	}
}

// TestGuesses requires that the keys of published projects are guessed from the names in their configurations.
func TestGuesses(t *testing.T) {
	for _, c := range []struct{ webhook, service, key string }{
		{"rev.object.sidecar-injector.istio.io", "istiod", "sidecar.istio.io/inject"},
		{"linkerd-proxy-injector.linkerd.io", "linkerd-proxy-injector", "linkerd.io/inject"},
		{"sidecar-injector.dapr.io", "dapr-sidecar-injector", "dapr.io/enabled"},
		{"vault.hashicorp.com", "vault-agent-injector-svc", "vault.hashicorp.com/agent-inject"},
		{"consul-connect-injector.consul.hashicorp.com", "consul-connect-injector", "consul.hashicorp.com/connect-inject"},
		{"namespace-kuma-injector.kuma.io", "kuma-control-plane", "kuma.io/sidecar-injection"},
		{"osm-inject.k8s.io", "osm-injector", "osm-injection"},
		{"sidecar-injector-webhook.morven.me", "sidecar-injector-webhook-svc", "sidecar-injector-webhook.morven.me/inject"},
	} {
		h := &Hints{}
		h.AddName(c.webhook)
		h.AddWords(c.service)
		guesses := h.Guesses()
		if !slices.Contains(guesses, c.key) {
			t.Errorf("%s: %s is none of %d guesses", c.webhook, c.key, len(guesses))
		}
		for _, key := range guesses {
			if !IsKey(key) || strings.HasPrefix(key, "k8s.io/") || strings.Contains(key, "kb.io/") {
				t.Errorf("%s: guess %q", c.webhook, key)
			}
		}
	}
	h := &Hints{}
	h.AddName("https://127.0.0.1:9443/mutate")
	h.AddDomain("agents.example.com") // of a key that the webhook writes
	if !slices.Contains(h.Guesses(), "agents.example.com/inject") {
		t.Errorf("guesses %q", h.Guesses())
	}
}
