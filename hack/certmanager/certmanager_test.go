// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	utilfeature "github.com/cert-manager/cert-manager/pkg/util/feature"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRenewalFailsNoCall renews the certificate of a webhook that runs with the manifests of the example. No call may
// fail.
func TestRenewalFailsNoCall(t *testing.T) {
	s := newService(t)
	s.forwardTo(s.program(t))
	awaitEnforced(t)
	w := s.watch(t)
	for range 3 {
		old := s.served(t)
		renew(t, name)
		s.awaitOther(t, old)
	}
	w.failedNone(t)
}

// renew requests the renewal of a certificate, as `cmctl renew` does.
func renew(t *testing.T, certificate string) {
	t.Helper()
	ctx, certificates := t.Context(), env.certs.CertmanagerV1().Certificates(name)
	c, err := certificates.Get(ctx, certificate, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	c.Status.Conditions = append(c.Status.Conditions, certmanagerv1.CertificateCondition{
		Type: certmanagerv1.CertificateConditionIssuing, Status: "True", Reason: "ManuallyTriggered", LastTransitionTime: &now,
	})
	if _, err := certificates.UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestRenewalWithoutCAFailsCalls renews a self-signed certificate, which no separate CA has signed. Calls must fail if
// cainjector replaces the caBundle, as it did before version 1.19, but not if it merges the old and new CAs. The guide
// gives this as the reason for a separate CA. The test also shows that the tests of this package can detect failed
// calls.
func TestRenewalWithoutCAFailsCalls(t *testing.T) {
	for merging, fails := range map[string]bool{"CAInjectorMerging=true": false, "CAInjectorMerging=false": true} {
		t.Run(merging, func(t *testing.T) {
			setFeature(t, merging)
			s := newService(t)
			kubectl(t, "patch", "-n", name, "certificate/"+name, "--type=merge", `-p={"spec":{"issuerRef":{"name":"deny-policy-selfsigned"}}}`)
			kubectl(t, "delete", "-n", name, "secret/deny-policy-tls", "--ignore-not-found")
			kubectl(t, "wait", "-n", name, "--for=create", "secret/deny-policy-tls")
			s.forwardTo(s.program(t))
			awaitEnforced(t)
			old, w := s.served(t), s.watch(t)
			renew(t, name)
			s.awaitOther(t, old)
			if failures := w.end(t); failures > 0 != fails {
				t.Errorf("%d failures", failures)
			}
		})
	}
}

func setFeature(t *testing.T, setting string) {
	t.Helper()
	if err := utilfeature.DefaultMutableFeatureGate.Set(setting); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := utilfeature.DefaultMutableFeatureGate.Set("CAInjectorMerging=true"); err != nil {
			t.Error(err)
		}
	})
}

// TestReplacingTheCAFailsNoCall replaces the CA with the commands of the guide. No call may fail.
func TestReplacingTheCAFailsNoCall(t *testing.T) {
	s := newService(t)
	s.forwardTo(s.program(t))
	awaitEnforced(t)
	old, steps := s.served(t), commands(t, "### Replace the CA")
	if len(steps) != 4 {
		t.Fatalf("the guide has %d steps", len(steps))
	}
	dir, w := t.TempDir(), s.watch(t)
	bash(t, dir, steps[0])
	bash(t, dir, steps[1])
	w.some(t) // the guide waits a minute here, which the test does not need
	bash(t, dir, steps[2])
	s.awaitOther(t, old)
	bash(t, dir, steps[3])
	w.failedNone(t)
	now, cas := s.served(t), awaitBundle(t, 1)
	if err := now.CheckSignatureFrom(cas[0]); err != nil || now.Issuer.String() == old.Issuer.String() {
		t.Errorf("the caBundle has %s, but %s signed the certificate (%v)", cas[0].Subject, now.Issuer, err)
	}
}

// commands returns the shell code blocks below a heading of the guide.
func commands(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/certificates.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n"+heading)
	if !ok {
		t.Fatalf("the guide has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	var blocks []string
	for _, part := range strings.Split(section, "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// bash runs commands in a folder, with kubectl on the PATH.
func bash(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	path := env.api.Dir + string(filepath.ListSeparator) + os.Getenv("PATH")
	cmd.Env = append(os.Environ(), "PATH="+path, "KUBECONFIG="+env.kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
}
