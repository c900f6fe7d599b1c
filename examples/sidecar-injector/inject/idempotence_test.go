// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// samples returns Pods with the injector's label. Some of them already have parts that the injector adds.
func samples() []runtime.Object {
	return []runtime.Object{
		newPod(),
		newPod(injected),
		newPod(label("disabled")),
		newPod(withVolume(volume())),
		newPod(withContainer(proxy(image))),
	}
}

// subject returns the injecting hook with the registration that the API server gets.
func subject(t testing.TB) idempotence.Subject {
	t.Helper()
	configuration, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "test", URL: "https://127.0.0.1"}, Hooks(image)...)
	if err != nil {
		t.Fatal(err)
	}
	if len(configuration.Webhooks) != 1 {
		t.Fatalf("there are %d mutating hooks, want one", len(configuration.Webhooks))
	}
	registration := configuration.Webhooks[0]
	return idempotence.Handler(registration, func() http.Handler {
		hooks := Hooks(image) // must not use t, because a fuzz target calls this outside of its test
		return hooks[slices.IndexFunc(hooks, func(h *webhook.Hook) bool { return h.Name() == registration.Name })]
	})
}

// TestIdempotence runs the harness. It covers objects, edits and other webhooks that TestReinvocation does
// not.
func TestIdempotence(t *testing.T) {
	idempotence.Check(t, subject(t), idempotence.Options{
		Samples: samples(), Objects: 15,
		Budget: 10 * time.Minute, // enough for a slow machine with the race detector
	})
}

// FuzzIdempotence runs the harness for as long as go test -fuzz runs.
func FuzzIdempotence(f *testing.F) {
	idempotence.Fuzz(f, subject(f), idempotence.Options{Samples: samples()})
}
