// SPDX-License-Identifier: Apache-2.0

package hooktest

import (
	"net/http"
	"slices"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Mutating returns a subject of package idempotence with all mutating hooks, and with the registrations that
// the API server gets.
func Mutating(t testing.TB, newHooks func() []*webhook.Hook) idempotence.Subject {
	t.Helper()
	configuration, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "test", URL: "https://127.0.0.1"}, newHooks()...)
	if err != nil {
		t.Fatal(err)
	}
	if configuration == nil {
		t.Fatal("there is no mutating hook")
	}
	var all []idempotence.Subject
	for _, registration := range configuration.Webhooks {
		all = append(all, idempotence.Handler(registration, func() http.Handler {
			hooks := newHooks() // must not use t, because a fuzz target calls this outside of its test
			return hooks[slices.IndexFunc(hooks, func(h *webhook.Hook) bool { return h.Name() == registration.Name })]
		}))
	}
	return idempotence.Together(all...)
}
