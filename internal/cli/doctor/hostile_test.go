// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/doctor"
)

// TestLoopbackOfOtherMachine requires that doctor does not try an address of loopback if the API server runs elsewhere.
// Managed clusters have webhooks such as https://127.0.0.1:23443/mutate.
func TestLoopbackOfOtherMachine(t *testing.T) {
	for server, want := range map[string]int{"https://10.0.0.1:6443": 0, "https://127.0.0.1:6443": 1} {
		r := newReader(&rest.Config{Host: server}, nil, func(string, ...any) {})
		for _, host := range []string{"127.0.0.1", "localhost", "[::1]"} {
			if ways := r.destinations(doctor.Backend{URL: "https://" + host + ":23443"}); len(ways) != want {
				t.Errorf("%s of %s: %d ways", host, server, len(ways))
			}
		}
		if len(r.gaps) != 3*(1-want) {
			t.Errorf("%s: the gaps are %+v", server, r.gaps)
		}
	}
	r := newReader(&rest.Config{Host: "https://10.0.0.1:6443"}, nil, func(string, ...any) {})
	if ways := r.destinations(doctor.Backend{URL: "https://hook.example.com"}); len(ways) != 1 || len(r.gaps) > 0 {
		t.Errorf("%d ways to a host, and the gaps %+v", len(ways), r.gaps)
	}
}

// TestFailingOfOneName requires that the message of the API server is about the webhook with the URL in it, if two
// configurations have webhooks of one name, as those of cert-manager do.
func TestFailingOfOneName(t *testing.T) {
	service := doctor.Backend{Service: types.NamespacedName{Namespace: "shop", Name: "hook"}, Port: 443}
	mutate := &doctor.Target{Kind: doctor.Mutating, Webhook: "hook.example.com", Path: "/mutate", Fails: true, Backend: service}
	validate := &doctor.Target{Kind: doctor.Validating, Webhook: "hook.example.com", Path: "validate", Fails: true, Backend: service}
	remote := &doctor.Target{Kind: doctor.Validating, Webhook: "hook.example.com", Path: "/mutate", Fails: true, Backend: doctor.Backend{URL: "https://hook.example.com"}}
	all := []*doctor.Target{mutate, validate, remote, {Webhook: "hook.example.com"}, {Webhook: "other", Fails: true}}
	for message, want := range map[string][]*doctor.Target{
		`failed to call webhook: Post "https://hook.shop.svc:443/mutate?timeout=10s": EOF`:   {mutate},
		`failed to call webhook: Post "https://hook.shop.svc:443/validate?timeout=10s": EOF`: {validate},
		`failed to call webhook: Post "https://hook.example.com/mutate?timeout=10s": EOF`:    {remote},
		`expected response.uid="a", got "b"`:                                                 {mutate, validate, remote},
	} {
		got := failing(all, "hook.example.com", message)
		if len(got) != len(want) {
			t.Errorf("%s: %d webhooks, want %d", message, len(got), len(want))
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: webhook %d is %+v", message, i, got[i])
			}
		}
	}
}

// TestClock requires that the time is that of the API server, if the clock of this machine is wrong.
func TestClock(t *testing.T) {
	for _, ahead := range []time.Duration{-48 * time.Hour, 0, 48 * time.Hour} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			_, _ = io.WriteString(w, `{"gitVersion":"v1.36.0"}`)
		}))
		defer server.Close()
		var c clock
		if got, err := versionOf(t.Context(), c.observe(&rest.Config{Host: server.URL})); err != nil || got != "v1.36.0" {
			t.Fatalf("%q, %v", got, err)
		}
		if got := time.Until(c.now()); (got - ahead).Abs() > mostSkew {
			t.Errorf("the clock is %s ahead, want %s", got, ahead)
		}
	}
}
