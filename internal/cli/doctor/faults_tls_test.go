// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// servedFaults are in what the program serves.
var servedFaults = []fault{
	{name: "HTTP instead of HTTPS", want: "not-tls SERVICE", before: func(w *world) { w.each(func(s *servedWebhook) { s.plain = true }) }},
	{name: "no certificate yet", want: "handshake-failed SERVICE", before: func(w *world) { w.each(func(s *servedWebhook) { s.certificate = nil }) }},
	{name: "a certificate for another name", want: "certificate-name SERVICE", before: func(w *world) { w.certificate("other." + w.namespace + ".svc") }},
	{name: "a certificate with a common name only", want: "certificate-name SERVICE", before: func(w *world) {
		w.certificate("", func(c *x509.Certificate) { c.DNSNames, c.Subject.CommonName = nil, w.host() })
	}},
	{name: "a certificate of another CA", want: "certificate-untrusted SERVICE", before: func(w *world) {
		w.ca = newAuthority(w.t)
		w.certificate(w.host())
	}},
	{name: "one of two Pods has a certificate of another CA", want: "certificate-untrusted SERVICE", before: func(w *world) {
		w.servers[1].certificate = newAuthority(w.t).serving(w.t, w.host())
	}},
	{name: "an expired certificate", want: "certificate-expired SERVICE", before: func(w *world) {
		w.certificate(w.host(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	}},
	{name: "a certificate of the future", want: "certificate-not-yet-valid SERVICE", before: func(w *world) {
		w.certificate(w.host(), func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
	}},
	{name: "a certificate that expires tomorrow", want: "certificate-expires-soon SERVICE", before: func(w *world) {
		w.certificate(w.host(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(24 * time.Hour) })
	}},
	{name: "another path", want: "wrong-path CONFIGURATION", before: func(w *world) { w.each(func(s *servedWebhook) { s.path = "/other" }) }},
}

// bundleFaults are in the caBundle.
var bundleFaults = []fault{
	{name: "the caBundle is missing", want: "AK506 CONFIGURATION", before: func(w *world) { w.validating.Webhooks[0].ClientConfig.CABundle = nil }},
	{name: "the caBundle is not PEM", want: "AK502 CONFIGURATION", before: func(w *world) { w.validating.Webhooks[0].ClientConfig.CABundle = []byte("CA") }},
	{name: "the caBundle has a private key", want: "AK507 CONFIGURATION", before: func(w *world) {
		bundle := &w.validating.Webhooks[0].ClientConfig.CABundle
		*bundle = append(slices.Clone(*bundle), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret")})...)
	}},
	{name: "the CA has expired", want: "AK503 CONFIGURATION", before: func(w *world) {
		w.ca = newAuthority(w.t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
		w.validating.Webhooks[0].ClientConfig.CABundle = w.ca.bundle
		w.certificate(w.host())
	}},
	{name: "the CA expires tomorrow", want: "AK504 CONFIGURATION", before: func(w *world) {
		w.ca = newAuthority(w.t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(24 * time.Hour) })
		w.validating.Webhooks[0].ClientConfig.CABundle = w.ca.bundle
		w.certificate(w.host())
	}},
}
