// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// newFields returns a Pod with n fields that corev1.Pod lacks.
func newFields(n int) string {
	var fields strings.Builder
	for i := range n {
		fmt.Fprintf(&fields, `,"new%d":{"deep":1}`, i)
	}
	return `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app"` + fields.String() + `}]}}`
}

func TestUnknownFieldsPolicies(t *testing.T) {
	const field = "spec.containers[0].new"
	warning := func(i int) string {
		return fmt.Sprintf("webhook pods.example.com does not know the field %s%d", field, i)
	}
	more := func(text string) string { return "webhook pods.example.com: " + text }
	const denied = "Forbidden: the webhook does not know this field"
	for _, in := range []struct {
		reason   string
		policy   webhook.UnknownFieldsPolicy
		call     call
		called   bool
		counted  uint64
		warnings []string
		message  string // of the denial
		causes   int
	}{
		{reason: "the default does not look", call: call{object: newFields(3)}, called: true},
		{reason: "counted, and nothing else", policy: webhook.CountUnknownFields, call: call{object: newFields(3)}, called: true, counted: 1},
		{reason: "nothing to count", policy: webhook.CountUnknownFields, call: call{object: newFields(0)}, called: true},
		{reason: "warned of", policy: webhook.WarnUnknownFields, call: call{object: newFields(2)}, called: true, counted: 1,
			warnings: []string{warning(0), warning(1)}},
		{reason: "warned of a few, the others are a number", policy: webhook.WarnUnknownFields, call: call{object: newFields(5)}, called: true, counted: 1,
			warnings: []string{warning(0), warning(1), warning(2), more("2 more unknown fields")}},
		{reason: "one more takes no more room than its number", policy: webhook.WarnUnknownFields, call: call{object: newFields(4)}, called: true, counted: 1,
			warnings: []string{warning(0), warning(1), warning(2), warning(3)}},
		{reason: "so many that not all are listed", policy: webhook.WarnUnknownFields, call: call{object: newFields(500)}, called: true, counted: 1,
			warnings: []string{warning(0), warning(1), warning(2), more("at least 97 more unknown fields")}},
		{reason: "nothing to warn of", policy: webhook.WarnUnknownFields, call: call{object: newFields(0)}, called: true},
		{reason: "denied", policy: webhook.DenyUnknownFields, call: call{object: newFields(1), name: "web"}, counted: 1,
			message: `Pod "web" is invalid: ` + field + `0: ` + denied, causes: 1},
		{reason: "denied with a few causes, the others are a number", policy: webhook.DenyUnknownFields, call: call{object: newFields(12), name: "web"}, counted: 1,
			message: field + `9: ` + denied + "] and 2 more fields", causes: 10},
		{reason: "denied with one cause more in place of its number", policy: webhook.DenyUnknownFields, call: call{object: newFields(11), name: "web"}, counted: 1,
			message: field + `10: ` + denied + "]", causes: 11},
		{reason: "nothing to deny", policy: webhook.DenyUnknownFields, call: call{object: newFields(0)}, called: true},
		{reason: "the old object is not checked", policy: webhook.DenyUnknownFields, called: true,
			call: call{operation: admissionv1.Update, object: newFields(0), oldObject: newFields(3)}},
		{reason: "the old object of a delete is not checked", policy: webhook.DenyUnknownFields, call: call{operation: admissionv1.Delete, oldObject: newFields(3)}, called: true},
		{reason: "null is not an object", policy: webhook.DenyUnknownFields, call: call{operation: admissionv1.Connect}, called: true},
	} {
		row(t, in.reason, func(t *testing.T) {
			called := false
			both(t, func(context.Context, *webhook.Request[corev1.Pod]) error { called = true; return nil },
				func(t *testing.T, hook *webhook.Hook, isMutating bool) {
					called = false
					copied := hook.WithUnknownFields(in.policy)
					response := ask(t, copied.WithMaxBodyBytes(1<<20), in.call).accepted(t, in.call, isMutating)
					if called != in.called || response.Allowed != in.called || !slices.Equal(response.Warnings, in.warnings) {
						t.Errorf("called %t, allowed %t, warnings %q", called, response.Allowed, response.Warnings)
					}
					if hook.CallsWithUnknownFields() != in.counted || copied.CallsWithUnknownFields() != in.counted {
						t.Errorf("counted %d and %d, want %d", hook.CallsWithUnknownFields(), copied.CallsWithUnknownFields(), in.counted)
					}
					if in.message == "" {
						return
					}
					status := response.Result
					if status.Code != 422 || status.Reason != metav1.StatusReasonInvalid || !strings.HasSuffix(status.Message, in.message) {
						t.Errorf("got %d %s %s", status.Code, status.Reason, status.Message)
					}
					if causes := status.Details.Causes; len(causes) != in.causes || causes[0].Field != field+"0" {
						t.Errorf("got causes %+v", causes)
					}
				})
		})
	}
}

func TestAnUnknownPolicyIsInvalid(t *testing.T) {
	for _, policy := range []webhook.UnknownFieldsPolicy{-1, 4, 17} {
		both(t, admit, func(t *testing.T, hook *webhook.Hook, _ bool) {
			odd := hook.WithUnknownFields(policy)
			refusal := fmt.Sprintf("webhook pods.example.com: UnknownFieldsPolicy(%d) is not a policy for unknown fields; "+
				"use one of IgnoreUnknownFields, CountUnknownFields, WarnUnknownFields, DenyUnknownFields", policy)
			want(t, fmt.Sprint(odd.Check()), refusal)
			want(t, ask(t, odd, call{object: newFields(1)}).failed(t).Message, "the registration of the hook is invalid: "+refusal)
			if err := odd.WithUnknownFields(webhook.DenyUnknownFields).Check(); err != nil || hook.Check() != nil {
				t.Errorf("a right policy after a wrong one: %v; before: %v", err, hook.Check())
			}
		})
	}
	want(t, webhook.DenyUnknownFields.String(), "DenyUnknownFields")
	want(t, webhook.IgnoreUnknownFields.String(), "IgnoreUnknownFields")
}

func TestUnknownFieldsArePartOfTheType(t *testing.T) {
	deny := func(hook *webhook.Hook) *webhook.Hook { return hook.WithUnknownFields(webhook.DenyUnknownFields) }
	reg := admissionregistrationv1.ValidatingWebhook{Name: "any.example.com", Rules: everything}
	loose := webhook.Validating(reg, func(context.Context, *webhook.Request[unstructured.Unstructured]) error { return nil })
	ask(t, deny(loose), call{object: newFields(3)}).allowed(t, call{}, false)
	projection := webhook.Validating(reg, func(context.Context, *webhook.Request[podImages]) error { return nil })
	status := ask(t, deny(projection), call{object: `{"spec":{"containers":[{"name":"a"}]},"kind":"Pod"}`}).denied(t, call{}, false)
	want(t, status.Message, `Pod "" is invalid: kind: Forbidden: the webhook does not know this field`)
	ask(t, deny(projection), call{object: `{"spec":{"containers":[{"name":"a"}]}}`}).allowed(t, call{}, false)
	// A wrong kind, or an object that does not decode, must be reported instead of the unknown fields.
	want(t, ask(t, deny(validating(admit)), call{object: newFields(1), kind: "/v1/Node"}).failed(t).Message, "the hook handles kind Pod (v1), not kind Node (v1)")
	want(t, ask(t, deny(validating(admit)), call{object: `{"new":1,"spec":1}`}).failed(t).Message, "cannot decode object as v1.Pod: spec: want object, got number")
	raw := webhook.MutatingRaw(anything, func(context.Context, *review.Request) (*review.Decision, patch.Patch, error) {
		return review.Allow(), nil, nil
	})
	if err := deny(raw).Check(); err == nil || err.Error() != "webhook pods.example.com takes bytes and has no type, so no field is unknown: remove the policy" || raw.Check() != nil {
		t.Errorf("got %v, and without the policy %v", err, raw.Check())
	}
}
