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

// bundle reports what is wrong with the caBundle by itself.
func (l *linter) bundle(h *hook) {
	at := h.at.Child("clientConfig", "caBundle")
	text := bytes.TrimSpace(h.ClientConfig.CABundle)
	if len(text) == 0 { // white space is a placeholder
		if _, _, isService := l.serviceOf(h); l.options.Live && h.ClientConfig.Service != nil && isService {
			l.found("AK506", h, at, "there is no caBundle, and the webhook is a service")
		}
		return
	}
	all, key, skipped := certificatesOf(text)
	if key {
		l.found("AK507", h, at, "caBundle holds a private key")
	}
	switch {
	case len(all) == 0:
		l.found("AK502", h, at, cmp.Or(strings.Join(skipped, "; "), "caBundle holds no certificate in PEM form"))
		return
	case len(skipped) > 0:
		l.found("AK502", h, at, "the API server skips a part of caBundle and uses the rest: "+strings.Join(skipped, "; ")).
			only(Warning).with("Replace that part, or remove it.")
	}
	l.validity(h, all)
	if !slices.ContainsFunc(all, func(c *x509.Certificate) bool { return c.IsCA }) {
		l.found("AK505", h, at, fmt.Sprintf("none of its certificates is one of a CA: %s", subject(all[0])))
	}
}

// certificatesOf returns the certificates of a bundle that the API server sees (crypto/x509
// CertPool.AppendCertsFromPEM), and why it skips others. Text around them and blocks of other types are tolerated.
func certificatesOf(text []byte) (all []*x509.Certificate, key bool, skipped []string) {
	for number := 1; ; {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			return all, key, skipped
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			key = true
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

// validity reports bundles of which no certificate is valid, or of which the last will expire. Expired ones beside
// others are what a rotation leaves behind.
func (l *linter) validity(h *hook, all []*x509.Certificate) {
	at := h.at.Child("clientConfig", "caBundle")
	now := l.options.Now()
	last := slices.MaxFunc(all, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	begun := func(c *x509.Certificate) bool { return !now.Before(c.NotBefore) && now.Before(c.NotAfter) }
	const day = 24 * time.Hour
	switch left := last.NotAfter.Sub(now); {
	case left <= 0:
		l.found("AK503", h, at, fmt.Sprintf("%s expired at %s", subject(last), last.NotAfter.UTC().Format(time.RFC3339)))
	case !slices.ContainsFunc(all, begun):
		l.found("AK503", h, at, fmt.Sprintf("%s is not valid before %s", subject(last), last.NotBefore.UTC().Format(time.RFC3339))).
			with("Wait until then, or issue it anew; see whether a clock is wrong.")
	case left < l.options.ExpiresWithin:
		l.found("AK504", h, at, fmt.Sprintf("%s expires at %s, in %d days", subject(last), last.NotAfter.UTC().Format(time.RFC3339), left/day))
	}
}

// serving holds the certificate that is served against what the API server verifies.
func (l *linter) serving(h *hook) {
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
		l.found("AK508", h, at, fmt.Sprintf("the serving certificate is not for %s but for %s", host, namesOf(chain[0])))
	}
	bundle, _, _ := certificatesOf(bytes.TrimSpace(h.ClientConfig.CABundle))
	if len(bundle) == 0 {
		return // reported as such, or to be filled in
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

// host is the name that the API server verifies.
func (h *hook) host() string {
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
		return "nothing: it has no subject alternative name"
	}
	return textutil.Join(slices.Compact(names), "and")
}
