// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestSamplesAreChanged checks that each webhook for new objects changes, or denies, one of its samples. A webhook that
// does nothing passes every law, so as a correct case it would prove nothing.
func TestSamplesAreChanged(t *testing.T) {
	// The harness varies these samples until the webhooks act.
	idle := []string{"M19 searches the raw JSON for text", "M19 reads a decoded field", "N11 the user's own version of the sidecar", "V16 sorts its steps (Widget)"}
	correct, broken := HeldOut()
	tested := 0
	for _, c := range slices.Concat(Patterns(), Lookalikes(), correct, broken) {
		created := slices.ContainsFunc(c.Webhook.Rules[0].Operations, func(o admissionregistrationv1.OperationType) bool { return o == "CREATE" || o == "*" })
		if len(c.Samples) == 0 || !created {
			continue
		}
		tested++
		acts := slices.ContainsFunc(c.Samples, func(sample runtime.Object) bool {
			r, err := do(c.New(), call{object: parse(text(sample))})
			return err != nil || !r.allowed || len(r.patch) > 0
		})
		if !acts && !slices.Contains(idle, c.Name) {
			t.Errorf("%s changes none of its samples", c.Name)
		}
	}
	if tested < 50 {
		t.Errorf("only %d cases have samples", tested)
	}
}

// TestMovesPort checks that the edit movesPort changes the port http, because its case has no samples.
func TestMovesPort(t *testing.T) {
	pod := parse(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"app:1","ports":[{"name":"http","containerPort":8080}]}]}}`)
	r, err := do(pods(movesPort), call{object: pod})
	if err != nil || !strings.Contains(string(r.patch), "18080") {
		t.Errorf("got %s, %v", r.patch, err)
	}
}
