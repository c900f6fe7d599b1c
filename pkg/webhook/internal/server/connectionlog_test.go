// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

// TestHandshakeClass checks the class of handshake errors, such as those that clients in other languages cause.
func TestHandshakeClass(t *testing.T) {
	for reason, want := range map[string]string{
		"EOF": handshakeProbe, "read tcp 10.0.0.1:9443->10.0.0.2:40000: read: connection reset by peer": handshakeProbe,
		"write tcp 10.0.0.1:9443->10.0.0.2:40000: write: broken pipe":                      handshakeProbe,
		"remote error: tls: bad certificate":                                               handshakeUntrusted,
		"remote error: tls: unknown certificate authority":                                 handshakeUntrusted,
		"remote error: tls: unknown certificate":                                           handshakeUntrusted,
		"remote error: tls: expired certificate":                                           handshakeUntrusted,
		"client sent an HTTP request to an HTTPS server":                                   handshakePlaintext,
		"tls: first record does not look like a TLS handshake":                             handshakePlaintext,
		"tls: unsupported SSLv2 handshake received":                                        handshakePlaintext,
		"read tcp 10.0.0.1:9443->10.0.0.2:40000: i/o timeout":                              handshakeTimeout,
		"tls: client offered only unsupported versions: [302 301]":                         handshakeVersion,
		"tls: no cipher suite supported by both client and server; offered: [5]":           handshakeVersion,
		`tls: client requested unsupported application protocols (["smtp"])`:               handshakeVersion,
		"remote error: tls: protocol version not supported":                                handshakeVersion,
		"tls: client didn't provide a certificate":                                         handshakeClient,
		"tls: failed to verify certificate: x509: certificate signed by unknown authority": handshakeClient,
		"there is no certificate to serve: the Secret shop/certs is empty":                 handshakeNoCert,
		"tls: no certificates configured":                                                  handshakeNoCert,
		"tls: the moon is in the wrong quarter":                                            handshakeOther,
	} {
		if got := handshakeClass(reason); got != want {
			t.Errorf("%s: got %s, want %s", reason, got, want)
		}
	}
}

func TestUntrustedIsLoggedOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		c := NewConnectionLog(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}), func(string) {}).Writer()
		for range 180 { // three minutes
			if _, err := c.Write([]byte("http: TLS handshake error from 10.0.0.2:40000: remote error: tls: bad certificate\n")); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
		}
		if len(lines) != 3 || !strings.Contains(lines[1], `"moreBefore"=59`) || !strings.Contains(lines[1], "caBundle") {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
		lines = nil
		for _, line := range []string{"http: Accept error: accept tcp: too many open files; retrying in 5ms", "http: panic serving 10.0.0.2:40000: oh", "http2: received GOAWAY"} {
			_, _ = c.Write([]byte(line + "\n"))
		}
		if len(lines) != 2 || !strings.Contains(lines[0], "limit of open files") || !strings.Contains(lines[1], "oh") {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}
