// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"encoding/json"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/chain"
)

func TestAdmitsAPodThroughOneHandler(t *testing.T) {
	c := newChain(t, chain.Webhooks{
		Mutating: mutating(mutatingHook("label.example.com")),
		Handlers: map[string]http.Handler{"label.example.com": patching(addLabel("seen", "yes"))},
	})
	got := admit(t, c, createPod("web"))
	if got.Rejection != nil {
		t.Fatalf("rejected: %v", got.Rejection)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(got.Object, &pod); err != nil {
		t.Fatal(err)
	}
	if pod.Labels["seen"] != "yes" || pod.Kind != "Pod" || pod.UID == "" || len(pod.ManagedFields) != 1 {
		t.Errorf("the object is %s", got.Object)
	}
	if len(got.Calls) != 1 || !got.Calls[0].Mutated || got.Calls[0].Effect != chain.Allowed || got.Calls[0].Attempts != 1 || got.Calls[0].Status != 200 {
		t.Errorf("the calls are %+v", got.Calls)
	}
	if len(got.Webhooks) != 1 || !got.Webhooks[0].Called || got.Webhooks[0].Reason != chain.Matches {
		t.Errorf("the verdicts are %+v", got.Webhooks)
	}
	if len(got.Annotations) != 2 {
		t.Errorf("the annotations are %+v", got.Annotations)
	}
}
