// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// These faults show only in the metrics of the API server, after it has called the webhook.
var trafficFaults = []fault{
	{name: "the webhook fails", want: "fails-closed CONFIGURATION", before: decide(func() error { return errors.New("the handler failed") }),
		after: func(t *testing.T, w *world) { w.call(t, 3) }},
	{name: "the webhook fails and is ignored", want: "fails-open CONFIGURATION", before: func(w *world) {
		decide(func() error { return errors.New("the handler failed") })(w)
		w.validating.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}, after: func(t *testing.T, w *world) { w.call(t, 3) }},
	{name: "the webhook is slow", want: "slow CONFIGURATION", before: decide(func() error {
		<-time.After(1100 * time.Millisecond)
		return nil
	}), after: func(t *testing.T, w *world) { w.call(t, 2) }},
	{name: "a matchCondition has errors", want: "condition-errors CONFIGURATION", before: func(w *world) {
		w.validating.Webhooks[0].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "labelled", Expression: `object.metadata.labels["team"] == "a"`}}
	}, after: func(t *testing.T, w *world) { w.call(t, 3) }},
}

// decide returns a function that changes the decision of all servers.
func decide(decision func() error) func(*world) {
	return func(w *world) {
		w.each(func(s *servedWebhook) {
			s.decide = func(_ context.Context, r *webhook.Request[corev1.ConfigMap]) error {
				if r.Object.Name == "first" {
					return webhook.Deny("the webhook is called")
				}
				return decision()
			}
		})
	}
}

// call waits until the API server calls the webhook, and makes it do so n times more.
func (w *world) call(t *testing.T, n int) {
	t.Helper()
	maps := w.client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	w.enforced(t)
	for i := range n {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.namespace, i)}}, dryRun)
		t.Logf("call %d: %v", i, err)
	}
}

var errDenied = webhook.Deny("denied")

// settle waits until the API server uses the configuration, without a call of its webhook. A configuration is used as
// soon as one that is created later is used.
func (w *world) settle(t *testing.T) {
	t.Helper()
	t.Run("settle", func(t *testing.T) { // its end deletes the later configuration
		w.rig.world(t, func(later *world) { later.rules("CREATE", "", "secrets", metav1.NamespaceSystem, later.namespace) })
		secrets := w.client.CoreV1().Secrets(metav1.NamespaceDefault)
		eventually(t, "a later webhook is called", func() bool { // it fails, because its hook does not handle Secrets
			_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil
		})
	})
}

// enforced waits until the API server uses the configuration.
func (w *world) enforced(t *testing.T) {
	t.Helper()
	maps := w.client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	eventually(t, "the webhook is called", func() bool {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
}
