// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestFights lets two webhooks undo each other's changes, and gives doctor the audit log of the API server.
func TestFights(t *testing.T) {
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	must(t, os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request, resources: [{group: '', resources: [configmaps]}]}]\n"), 0o600))
	r := newRig(t, map[string][]string{"audit-policy-file": {policy}, "audit-log-path": {log}, "audit-log-mode": {"blocking"}})
	for _, name := range []string{"a", "b"} {
		hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name: name + ".example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")), TimeoutSeconds: ptr.To[int32](5),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy), NamespaceSelector: except(metav1.NamespaceSystem),
		}, func(_ context.Context, r *webhook.Request[corev1.ConfigMap]) error {
			r.Object.Labels = map[string]string{"team": name}
			return nil
		})
		server := httptest.NewTLSServer(hook)
		t.Cleanup(server.Close)
		mutating, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "fight-" + name, URL: server.URL, CABundle: pemOf(server.Certificate())}, hook)
		must(t, err)
		must(t, second(r.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), mutating, metav1.CreateOptions{})))
	}
	eventually(t, "both webhooks are called", func() bool {
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "one-"}}
		one, err := r.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), one, metav1.CreateOptions{})
		return err == nil && one.Labels["team"] == "b"
	})
	if got := found(r.doctor(t)); len(got) > 0 {
		t.Errorf("found %q without the audit log", got)
	}
	report := r.doctor(t, func(o *Options) { o.AuditLogs = []string{log} })
	if got, want := found(report), []string{"undo-each-other MutatingWebhookConfiguration/fight-a"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
