// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestProbe lets doctor send dry runs. Nothing else called the webhooks before.
func TestProbe(t *testing.T) {
	r := newRig(t)
	failing := decide(func() error { return errors.New("the handler failed") })
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stored"}}
	must(t, second(r.client.CoreV1().ConfigMaps(metav1.NamespacePublic).Create(t.Context(), stored, metav1.CreateOptions{})))
	rows := []struct {
		name   string
		before func(*world)
		want   []string
		// gap is a part of the reason why the webhook was not probed.
		gap string
	}{
		{name: "healthy", before: func(*world) {}},
		{name: "denied", before: decide(func() error { return errDenied })},
		{name: "the webhook fails", before: failing, want: []string{"call-fails CONFIGURATION"}},
		{name: "the webhook fails and is ignored", before: func(w *world) {
			failing(w)
			w.validating.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		}, want: []string{"call-fails CONFIGURATION"}},
		{name: "the webhook fails for an update", before: func(w *world) {
			failing(w)
			w.rules("UPDATE", "", "configmaps", metav1.NamespaceDefault, metav1.NamespaceSystem, w.namespace)
		}, want: []string{"call-fails CONFIGURATION"}},
		{name: "the webhook fails for labelled objects", before: func(w *world) {
			failing(w)
			w.validating.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}, {Key: "tier", Operator: metav1.LabelSelectorOpExists},
			}}
		}, want: []string{"call-fails CONFIGURATION"}},
		{name: "a cause is known", before: func(w *world) { w.certificate("other.example.com") }, want: []string{"certificate-name SERVICE"}},
		{name: "a condition excludes the dry run", before: func(w *world) {
			w.validating.Webhooks[0].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "no", Expression: "request.name == 'other'"}}
		}, gap: "did not call"},
		{name: "nothing to send", before: func(w *world) { w.rules("DELETE", "", "configmaps", metav1.NamespaceSystem, w.namespace) }, gap: "no object"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := r.world(t, row.before)
			if row.gap == "" {
				w.settle(t)
			}
			report := r.doctor(t, func(o *Options) { o.Probe = true })
			want := []string{}
			for _, f := range row.want {
				want = append(want, w.names(f))
			}
			if got := found(report); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
			reason := ""
			for _, n := range report.NotProbed {
				reason += n.Reason
			}
			if !strings.Contains(reason, row.gap) || row.gap == "" && reason != "" {
				t.Errorf("not probed because %q, want %q", reason, row.gap)
			}
		})
	}
}
