// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/textutil"
)

// bundle reports problems of the caBundle that do not depend on the serving certificate.
func (l *linter) bundle(h *webhook) {
	at := h.at.Child("clientConfig", "caBundle")
	text := bytes.TrimSpace(h.ClientConfig.CABundle)
	if len(text) == 0 { // white space counts as a placeholder
		if _, _, isService := l.serviceOf(h); l.options.Live && h.ClientConfig.Service != nil && isService {
			l.found("AK506", h, at, "caBundle is missing, and the webhook is behind a Service")
		}
		return
	}
	all, hasKey, skipped := certificatesOf(text)
	if hasKey {
		l.found("AK507", h, at, "caBundle has a private key")
	}
	switch {
	case len(all) == 0:
		l.found("AK502", h, at, cmp.Or(strings.Join(skipped, "; "), "caBundle has no certificate in PEM"))
		return
	case len(skipped) > 0:
		l.found("AK502", h, at, "the API server ignores a part of caBundle: "+strings.Join(skipped, "; ")).
			withSeverity(Warning).withFix("Replace that part, or remove it.")
	}
	l.validity(h, all)
	if !slices.ContainsFunc(all, func(c *x509.Certificate) bool { return c.IsCA }) {
		l.found("AK505", h, at, fmt.Sprintf("no certificate of caBundle is a CA certificate; the first is %s", subject(all[0])))
	}
}

// certificatesOf returns the certificates of a bundle that the API server uses (crypto/x509
// CertPool.AppendCertsFromPEM), and a reason for each certificate that the API server skips. Text between PEM blocks
// and blocks of other types are allowed. hasKey reports whether there is a private key.
func certificatesOf(text []byte) (all []*x509.Certificate, hasKey bool, skipped []string) {
	for number := 1; ; {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			return all, hasKey, skipped
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			hasKey = true
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		switch {
		case len(block.Headers) > 0:
			skipped = append(skipped, fmt.Sprintf("certificate %d has PEM headers", number))
		case err != nil:
			skipped = append(skipped, fmt.Sprintf("certificate %d: %s", number, strings.TrimPrefix(err.Error(), "x509: ")))
		default:
			all = append(all, c)
		}
		number++
	}
}

func subject(c *x509.Certificate) string {
	if c.Subject.String() == "" {
		return "serial number " + c.SerialNumber.String()
	}
	return c.Subject.String()
}

// validity reports bundles without a valid certificate, and bundles in which the certificate with the latest expiry
// expires soon. It ignores expired certificates beside valid ones, which are normal after a rotation.
func (l *linter) validity(h *webhook, all []*x509.Certificate) {
	at := h.at.Child("clientConfig", "caBundle")
	now := l.options.Now()
	last := slices.MaxFunc(all, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	valid := func(c *x509.Certificate) bool { return !now.Before(c.NotBefore) && now.Before(c.NotAfter) }
	const day = 24 * time.Hour
	switch left := last.NotAfter.Sub(now); {
	case left <= 0:
		l.found("AK503", h, at, fmt.Sprintf("%s expired at %s", subject(last), last.NotAfter.UTC().Format(time.RFC3339)))
	case !slices.ContainsFunc(all, valid):
		l.found("AK503", h, at, fmt.Sprintf("%s is not valid before %s", subject(last), last.NotBefore.UTC().Format(time.RFC3339))).
			withFix("Wait until then, or issue a new certificate. Check the clocks of the machines.")
	case left < l.options.ExpiresWithin:
		l.found("AK504", h, at, fmt.Sprintf("%s expires at %s, in %d days", subject(last), last.NotAfter.UTC().Format(time.RFC3339), left/day))
	}
}

// serving verifies the serving certificate as the API server does.
func (l *linter) serving(h *webhook) {
	chain, ok := l.input.Serving[h.Name]
	if !ok {
		chain = l.input.Serving[""]
	}
	host := h.host()
	if len(chain) == 0 || host == "" {
		return
	}
	at := h.at.Child("clientConfig")
	if err := chain[0].VerifyHostname(host); err != nil {
		l.found("AK508", h, at, fmt.Sprintf("the serving certificate is for %s, not for %s", namesOf(chain[0]), host))
	}
	bundle, _, _ := certificatesOf(bytes.TrimSpace(h.ClientConfig.CABundle))
	if len(bundle) == 0 {
		return // another rule reports the missing caBundle, or a program fills it in later
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range bundle {
		roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: l.options.Now()}); err != nil {
		l.found("AK509", h, at.Child("caBundle"), strings.TrimPrefix(err.Error(), "x509: "))
	}
}

// host returns the name for which the API server verifies the serving certificate.
func (h *webhook) host() string {
	if s := h.ClientConfig.Service; s != nil {
		return s.Name + "." + s.Namespace + ".svc"
	}
	if h.ClientConfig.URL == nil {
		return ""
	}
	u, err := url.Parse(*h.ClientConfig.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func namesOf(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name at all"
	}
	return textutil.Join(slices.Compact(names), "and")
}
