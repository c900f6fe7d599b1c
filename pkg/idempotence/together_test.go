// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// annotating returns a webhook that adds one annotation to Pods that lack it.
func annotating(name string) Subject {
	s := editing("", "v1", "pods", onCreate, func(_ *admissionv1.AdmissionRequest, doc document) {
		meta := doc["metadata"].(document)
		annotations, _ := meta["annotations"].(document)
		if annotations == nil {
			annotations = document{}
			meta["annotations"] = annotations
		}
		if annotations[name] == nil {
			annotations[name] = "yes"
		}
	})
	s.webhooks[0].Name = name
	return s
}

// TestTogetherPassesAllLaws tests two correct webhooks as one subject. The second webhook must get the result of the
// first, including unknown fields, so that no law fails.
func TestTogetherPassesAllLaws(t *testing.T) {
	report, err := Run(t.Context(), Together(annotating("a.example.com"), annotating("b.example.com")), Options{Objects: 6})
	if err != nil || !report.OK() || len(report.Incomplete) > 0 {
		t.Errorf("%v:\n%s", err, text(report))
	}
}

// TestDryRunIsRejectedForSideEffects tests two webhooks as one subject. Like the API server, the harness must reject a
// dry run if either of them has side effects.
func TestDryRunIsRejectedForSideEffects(t *testing.T) {
	for _, tt := range []struct {
		name    string
		effects []admissionregistrationv1.SideEffectClass
		message string
		want    Verdict
	}{
		{"the first has side effects", []admissionregistrationv1.SideEffectClass{"Some", "None"}, `admission webhook "a.example.com" does not support dry run`, NotApplicable},
		{"the last has side effects", []admissionregistrationv1.SideEffectClass{"NoneOnDryRun", "Unknown"}, `admission webhook "b.example.com" does not support dry run`, NotApplicable},
		{"none has", []admissionregistrationv1.SideEffectClass{"NoneOnDryRun", "None"}, "", Passes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			subject := Together(annotating("a.example.com"), annotating("b.example.com"))
			for i, class := range tt.effects {
				subject.webhooks[i].SideEffects = &class
			}
			report, err := Run(t.Context(), subject, Options{Objects: 3})
			if err != nil || !report.OK() {
				t.Errorf("%v:\n%s", err, text(report))
			}
			if got := verdictOf(t, report, L7); got.Verdict != tt.want {
				t.Errorf("%+v", got)
			}
			o := newOptions(Options{}, internals{})
			subject, kinds, err := o.prepare(subject, &session.Connection{})
			if err != nil {
				t.Fatal(err)
			}
			r := newRun(t.Context(), o, subject, kinds[0], newReport(subject, o), &session.Connection{})
			x, ok := r.Valid(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}}})
			if !ok {
				t.Fatal("the Pod is not valid")
			}
			if out := r.F(r.Fresh(), session.Query{Object: x, DryRun: true}); out.Allowed != (tt.message == "") || out.Message != tt.message {
				t.Errorf("the dry run: allowed %t, message %q, want message %q", out.Allowed, out.Message, tt.message)
			}
		})
	}
}
