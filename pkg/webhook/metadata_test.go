// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	live     = `{"metadata":{"name":"web"}}`
	deleting = `{"metadata":{"name":"web","deletionTimestamp":"2026-01-02T03:04:05Z"}}`
)

// TestObjectsThatAreBeingDeleted checks that IsDeleting and WithDeletingAdmitted consider only the deletionTimestamp of
// the stored object. A client that writes one into the new object must not bypass a policy.
func TestObjectsThatAreBeingDeleted(t *testing.T) {
	for _, in := range []struct {
		reason string
		call   call
		want   bool
		unseen bool // with WithDeletingAdmitted
	}{
		{reason: "an update of an object that is being deleted", call: call{operation: admissionv1.Update, object: deleting, oldObject: deleting}, want: true, unseen: true},
		{reason: "an update that loses the timestamp", call: call{operation: admissionv1.Update, object: live, oldObject: deleting}, want: true, unseen: true},
		{reason: "an update that forges a timestamp", call: call{operation: admissionv1.Update, object: deleting, oldObject: live}},
		{reason: "a creation with a timestamp", call: call{operation: admissionv1.Create, object: deleting}},
		{reason: "a creation with an old object", call: call{operation: admissionv1.Create, object: deleting, oldObject: deleting}},
		{reason: "the first deletion", call: call{operation: admissionv1.Delete, oldObject: live}},
		{reason: "a second deletion reaches the handler", call: call{operation: admissionv1.Delete, oldObject: deleting}, want: true},
		{reason: "an update without an old object", call: call{operation: admissionv1.Update, object: deleting}},
	} {
		row(t, in.reason, func(t *testing.T) {
			called, got := false, false
			hook := validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
				called, got = true, req.IsDeleting()
				return nil
			})
			ask(t, hook, in.call).allowed(t, in.call, false)
			if !called || got != in.want {
				t.Errorf("got called %t, deleting %t", called, got)
			}
			called = false
			ask(t, hook.WithDeletingAdmitted(), in.call).allowed(t, in.call, false)
			if called == in.unseen {
				t.Errorf("with WithDeletingAdmitted: got called %t", called)
			}
		})
	}
}

// TestRequestsOfATestHaveNoMetadata checks that IsDeleting, Controller and FieldPath return zero values for a Request
// that a test created.
func TestRequestsOfATestHaveNoMetadata(t *testing.T) {
	req := &webhook.Request[corev1.Pod]{Object: &corev1.Pod{}}
	if req.IsDeleting() || req.Controller() != nil || req.FieldPath() != nil {
		t.Error("got metadata")
	}
}
