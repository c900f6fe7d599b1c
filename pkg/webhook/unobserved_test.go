// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"

	"github.com/admitkit/admitkit/internal/unobserved"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func TestMarkerHidesCallsFromObserversOfTheServer(t *testing.T) {
	ofServer, ofHook := &recorder{}, &recorder{}
	hook := mutating(label).WithObserver(unobserved.Marker[webhook.Hook, webhook.Observation]{}, ofHook)
	serve(t, webhook.Options{Observers: []webhook.Observer{ofServer}}, hook).ask(t, hook, call{}).allowed(t, call{}, true)
	if ofServer.begun > 0 {
		t.Errorf("the observer of the server saw %d calls, want 0", ofServer.begun)
	}
	ofHook.one(t)
}
