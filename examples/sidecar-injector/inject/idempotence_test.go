// SPDX-License-Identifier: Apache-2.0

package inject

import (
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

func subject() idempotence.Subject {
	return idempotence.Hooks(func() []*webhook.Hook { return Hooks(image) })
}

// TestIdempotence runs the harness. It covers objects, edits and other webhooks that TestReinvocation does
// not.
func TestIdempotence(t *testing.T) {
	idempotence.Check(t, subject(), idempotence.Options{
		Samples: samples(), Objects: 15,
		Budget: 10 * time.Minute, // enough for a slow machine with the race detector
	})
}

// FuzzIdempotence runs the harness for as long as go test -fuzz runs.
func FuzzIdempotence(f *testing.F) {
	idempotence.Fuzz(f, subject(), idempotence.Options{Samples: samples()})
}
