// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/admitkit/admitkit/internal/problem"
)

// TestUntrustedHintCanBeTyped checks that names from a certificate are quoted in a hint that the user pastes.
func TestUntrustedHintCanBeTyped(t *testing.T) {
	for name, want := range map[string]string{
		"hook.shop.svc":          "--server-name hook.shop.svc",
		"a; touch owned; #b.svc": "--server-name 'a; touch owned; #b.svc'",
		"a'$(touch owned)'.svc":  `--server-name 'a'\''$(touch owned)'\''.svc'`,
	} {
		leaf := &x509.Certificate{DNSNames: []string{name}}
		err := (&listener{runner: &runner{}}).untrusted("127.0.0.1:9443", "127.0.0.1", &tls.CertificateVerificationError{
			UnverifiedCertificates: []*x509.Certificate{leaf}, Err: x509.HostnameError{Certificate: leaf, Host: "127.0.0.1"}})
		if hints := problem.Hints(err); len(hints) != 1 || hints[0] != want {
			t.Errorf("%q: %q, want %q", name, hints, want)
		}
	}
}
