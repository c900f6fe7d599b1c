// SPDX-License-Identifier: Apache-2.0

package webhooktest_test

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// This example calls a hook as the API server does, and prints the decision, the patch and a field of the patched Pod.
func Example() {
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:  "policy.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		req.Object.Spec.PriorityClassName = "normal"
		return nil
	})
	test := func(t testing.TB) {
		pod := corev1.SchemeGroupVersion.WithKind("Pod")
		req := webhooktest.Request(t, admissionv1.Create, pod, "pods", &corev1.Pod{}, nil)
		decision := webhooktest.Decision(t, hook, req)
		fmt.Println(decision.Allowed, string(decision.Patch))
		fmt.Println(webhooktest.Patched[corev1.Pod](t, req, decision).Spec.PriorityClassName)
	}
	test(&exampleTB{})
	// Output:
	// true [{"op":"add","path":"/spec/priorityClassName","value":"normal"}]
	// normal
}

// exampleTB stands in for a *testing.T, because an example function gets none.
type exampleTB struct{ testing.TB }

func (*exampleTB) Helper()                  {}
func (*exampleTB) Context() context.Context { return context.Background() }
