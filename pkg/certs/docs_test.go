// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// TestGuideShowsTheState checks that docs/certificates.md shows the state in the Secret as it is in the middle of a
// rotation with default options.
func TestGuideShowsTheState(t *testing.T) {
	text, err := os.ReadFile("../../docs/certificates.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(text), "jq 'del(..|.key?, .certificate?)'\n")
	shown, _, ended := strings.Cut(shown, "```")
	if !found || !ended {
		t.Fatal("the state is not shown")
	}
	o, err := (Options{Namespace: "sidecar-injector", Secret: "sidecar-injector-ca", DNSNames: []string{"a.b.svc"}}).completed()
	if err != nil {
		t.Fatal(err)
	}
	p := o.policy()
	began := time.Date(2026, 11, 22, 11, 26, 8, 0, time.UTC)
	s := &state{generation: 2}
	for i := range 2 {
		if s.next, err = newAuthority(p.name, p.keyType, began, p.caLifetime, p.skew); err != nil {
			t.Fatal(err)
		}
		s, err = p.rotate(s, began.Add(time.Duration(i)*time.Hour), false, true)
		if err == nil {
			s, err = p.rotate(s, began.Add(time.Duration(i)*time.Hour), false, true) // records the CA that signs
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	if want, got := shape(t, data[stateKey]), shape(t, []byte(shown)); got != want {
		t.Errorf("the guide shows\n%s\nand it is\n%s", got, want)
	}
}

// shape returns the JSON of a state without keys, certificates and other values that differ between runs.
func shape(t *testing.T, text []byte) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "generation")
	retiring, _ := all["retiring"].([]any)
	for _, part := range append(retiring, all["signing"]) {
		for _, key := range []string{"key", "certificate", "until"} {
			delete(part.(map[string]any), key)
		}
	}
	short, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(short)
}
