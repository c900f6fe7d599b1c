// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestRepair runs the commands of a report in order, while a webhook rejects requests.
func TestRepair(t *testing.T) {
	r := newRig(t)
	w := r.world(t, func(w *world) {
		for i := range w.pods {
			w.slice.Endpoints[i].Conditions.Ready = ptr.To(false)
		}
	})
	address := net.JoinHostPort(w.service.Spec.ClusterIP, "443")
	r.refuse(address) // without a ready endpoint, no node forwards connections to the Service
	maps := r.client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	create := func() error {
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "one-"}}
		return second(maps.Create(t.Context(), one, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	eventually(t, "the webhook rejects requests", func() bool { return create() != nil })
	report := r.doctor(t)
	if got, want := found(report), w.names("endpoints-not-ready SERVICE"); !slices.Equal(got, []string{want}) || report.Repair == nil {
		t.Fatalf("found %q, want %q and a repair", got, want)
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "config")
	must(t, os.WriteFile(kubeconfig, r.server.Kubeconfig, 0o600))
	run := func(command string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+r.server.Dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	steps := report.Repair.Steps
	if len(steps) != 5 {
		t.Fatalf("the repair has %d steps: %v", len(steps), steps)
	}
	for _, command := range slices.Concat(steps[0].Commands, steps[1].Commands) {
		run(command)
	}
	if copied, err := os.ReadFile(filepath.Join(dir, w.namespace+".validatingwebhookconfiguration.yaml")); err != nil || !strings.Contains(string(copied), "failurePolicy: Fail") {
		t.Errorf("the copy is %q, %v", copied, err)
	}
	eventually(t, "requests are admitted", func() bool { return create() == nil })
	w.slice, _ = r.client.DiscoveryV1().EndpointSlices(w.namespace).Get(t.Context(), w.slice.Name, metav1.GetOptions{})
	for i := range w.slice.Endpoints {
		w.slice.Endpoints[i].Conditions.Ready = ptr.To(true) // the repair
	}
	r.route(t, address, w.servers[0].address)
	must(t, second(r.client.DiscoveryV1().EndpointSlices(w.namespace).Update(t.Context(), w.slice, metav1.UpdateOptions{})))
	for _, command := range slices.Concat(steps[2].Commands, steps[3].Commands) {
		run(command)
	}
	c, err := r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), w.validating.Name, metav1.GetOptions{})
	if err != nil || *c.Webhooks[0].FailurePolicy != "Fail" {
		t.Errorf("the configuration is %v after the repair, %v", c, err)
	}
	if report := r.doctor(t); len(report.Findings) > 0 || report.Repair != nil {
		t.Errorf("found %q after the repair", found(report))
	}
}

// TestRepairNamesWhoMay checks who may carry out the repair.
func TestRepairNamesWhoMay(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	r.world(t, func(w *world) { w.service = nil })
	for name, rule := range map[string]rbacv1.PolicyRule{
		"fixer":  {APIGroups: []string{registration}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"patch"}},
		"reader": {APIGroups: []string{registration}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		"other":  {APIGroups: []string{registration}, Resources: []string{"*"}, Verbs: []string{"*"}, ResourceNames: []string{"other"}},
	} {
		r.grant(t, name, rule)
	}
	repair := r.doctor(t).Repair
	if repair == nil || repair.You != "yes" || !slices.Contains(repair.Others, "User fixer") {
		t.Errorf("who may repair: %+v", repair)
	}
	if slices.Contains(repair.Others, "User reader") || slices.Contains(repair.Others, "User other") {
		t.Errorf("some of these may not repair: %v", repair.Others)
	}
	eventually(t, "the rights of the reader are known", func() bool {
		_, err := r.as("reader").client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		return err == nil
	})
	if report := r.as("reader").doctor(t); report.Repair != nil {
		t.Errorf("the reader may read no Services, but there is a repair: %v", report.Repair)
	}
}
