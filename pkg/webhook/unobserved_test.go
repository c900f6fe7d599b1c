// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func TestWithoutObservers(t *testing.T) {
	ofServer, before, after := &recorder{}, &recorder{}, &recorder{}
	hook := mutating(label).WithObserver(before).WithoutObservers()
	serve(t, webhook.Options{Observers: []webhook.Observer{ofServer}}, hook).ask(t, hook, call{}).allowed(t, call{}, true)
	hook = hook.WithObserver(after)
	serve(t, webhook.Options{Observers: []webhook.Observer{ofServer}}, hook).ask(t, hook, call{}).allowed(t, call{}, true)
	if ofServer.begun+before.begun > 0 {
		t.Errorf("the server's was told of %d calls, that of the hook of %d", ofServer.begun, before.begun)
	}
	after.one(t) // who adds one later wants it
}
