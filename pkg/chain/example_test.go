// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain"
)

// One webhook sets a label and a later one changes another field. The API server then calls the first one again.
func Example() {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "example"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			{
				Name:                    "team.example.com",
				Rules:                   []admissionregistrationv1.RuleWithOperations{podRule(admissionregistrationv1.Create)},
				ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			},
			{
				Name:                    "zone.example.com",
				Rules:                   []admissionregistrationv1.RuleWithOperations{podRule(admissionregistrationv1.Create)},
				ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}},
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			},
			{
				Name:                    "db.example.com",
				Rules:                   []admissionregistrationv1.RuleWithOperations{podRule(admissionregistrationv1.Create)},
				ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			},
		},
	}
	engine, err := chain.New(chain.Webhooks{
		Mutating: []*admissionregistrationv1.MutatingWebhookConfiguration{configuration},
		Handlers: map[string]http.Handler{ // any http.Handler that answers an AdmissionReview
			"team.example.com": patching(addLabel("team", "blue")),
			"zone.example.com": patching(addLabel("zone", "a")),
			"db.example.com":   allowing(),
		},
	}, chain.Options{})
	if err != nil {
		log.Fatal(err)
	}
	result, err := engine.Admit(context.Background(), chain.Request{
		Operation: admissionv1.Create,
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Object:    []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[]}}`),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range result.Calls {
		fmt.Printf("round %d: %s %s, mutated %t\n", call.Round, call.Webhook, call.Effect, call.Mutated)
	}
	for _, v := range result.Webhooks {
		fmt.Printf("%s called: %t, %s: %s\n", v.Webhook, v.Called, v.Reason, v.Detail)
	}
	if err := engine.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// round 0: team.example.com Allowed, mutated true
	// round 0: zone.example.com Allowed, mutated true
	// round 1: team.example.com Allowed, mutated false
	// team.example.com called: true, Matches: rules[0] is for CREATE of v1 pods
	// zone.example.com called: true, Matches: rules[0] is for CREATE of v1 pods
	// db.example.com called: false, ObjectSelector: the labels of neither the object nor the old object match
}
