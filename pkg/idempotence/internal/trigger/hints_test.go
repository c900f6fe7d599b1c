// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"slices"
	"testing"
)

func TestHints(t *testing.T) {
	h := &Hints{}
	h.AddExpression(`object.metadata.?annotations['a.example.com/inject'].orValue('') == 'enabled' && "team" in object.metadata.labels`)
	h.AddMessage(`the label cost.example.com/center must be set to "c7"`)
	h.AddWritten("b.example.com/injected")
	h.AddName("agent.example.com")
	if want := (Pair{"a.example.com/inject", "enabled"}); !slices.Contains(h.Pairs, want) {
		t.Errorf("pairs %v, want %v", h.Pairs, want)
	}
	for _, key := range []string{"a.example.com/inject", "team", "cost.example.com/center", "b.example.com/inject", "agent.example.com/inject", "example.com/agent-inject", "example.com/inject"} {
		if !slices.Contains(h.Keys, key) {
			t.Errorf("no key %q: %q", key, h.Keys)
		}
	}
	if !slices.Contains(h.Values, "c7") {
		t.Errorf("no value c7: %q", h.Values)
	}
}
