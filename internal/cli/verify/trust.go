// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
)

// unreachable returns an error that explains why there is no connection. It returns nil for a timeout or a broken
// connection, because the report shows these as failures of a law.
func (l *listener) unreachable(r *http.Request, err error) error {
	var (
		name    *net.DNSError
		refused *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		dialing *net.OpError
	)
	host := r.URL.Host
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return nil
	case errors.As(err, &refused):
		return l.untrusted(host, r.URL.Hostname(), refused)
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS client"): // net/http has no type for this error
		return problem.New("%s does not speak TLS: the API server calls webhooks only over HTTPS", host).
			Hint("check the port; to test without TLS: --url http://%s%s", host, r.URL.Path)
	case errors.As(err, &alert), errors.As(err, &dialing) && dialing.Op == "remote error":
		return problem.New("%s ended the TLS handshake: %w", host, err).Hint("--client-cert FILE --client-key FILE, if it requires client certificates")
	case errors.Is(err, syscall.ECONNREFUSED):
		return problem.New("nothing is listening on %s", host).Hint("start the webhook, or check the port")
	case errors.As(err, &name):
		err := problem.New("this machine cannot resolve the name %s", r.URL.Hostname())
		if service, namespace, ok := serviceOf(r.URL.Hostname()); ok {
			err = err.Hint("kubectl -n %s port-forward service/%s 9443:443", namespace, service).
				Hint("--url https://127.0.0.1:9443%s --server-name %s", r.URL.Path, r.URL.Hostname())
		}
		return err
	case errors.As(err, &dialing) && dialing.Op == "dial":
		return problem.New("cannot connect to %s: %w", host, dialing.Err)
	case speaksTLS(r): // the server has closed a connection that was not TLS
		return wantsTLS(plainURL(r))
	}
	return nil
}

func wantsTLS(where string) error {
	return problem.New("%s speaks TLS, but the URL begins with http", where).Hint("--url https%s", strings.TrimPrefix(where, "http"))
}

// speaksTLS reports whether the server of a call without TLS also accepts a TLS connection. The certificate of the
// server does not matter.
func speaksTLS(r *http.Request) bool {
	if r.URL.Scheme != "http" {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	port := r.URL.Port()
	if port == "" {
		port = "80"
	}
	connection, err := (&tls.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(r.URL.Hostname(), port))
	if err == nil {
		_ = connection.Close()
		return true
	}
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.AlertError))
}

func serviceOf(host string) (service, namespace string, ok bool) {
	parts := strings.Split(host, ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// untrusted returns an error that explains why a certificate was rejected.
func (l *listener) untrusted(host, name string, refused *tls.CertificateVerificationError) error {
	if len(refused.UnverifiedCertificates) == 0 {
		return problem.New("the certificate of %s is not trusted: %w", host, refused.Err)
	}
	var (
		leaf    = refused.UnverifiedCertificates[0]
		names   = namesOf(leaf)
		other   x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	if l.ServerName != "" {
		name = l.ServerName
	}
	switch {
	case errors.As(refused.Err, &other) && len(names) == 0:
		return problem.New("the certificate of %s has no subject alternative name, and the common name %q is ignored", host, leaf.Subject.CommonName).
			Hint("issue a certificate for %s", name)
	case errors.As(refused.Err, &other):
		return problem.New("the certificate of %s is for %s, not for %s", host, strings.Join(names, ", "), name).
			Hint("--server-name %s", textutil.ShellQuote(preferred(names)))
	case errors.As(refused.Err, &invalid) && invalid.Reason == x509.Expired:
		now := time.Now()
		if now.Before(leaf.NotBefore) {
			return problem.New("the certificate of %s is valid only from %s", host, leaf.NotBefore.Format(time.RFC3339))
		}
		return problem.New("the certificate of %s or of its CA has expired: the certificate itself is valid until %s", host, leaf.NotAfter.Format(time.RFC3339))
	}
	by, missing := "signed by "+leaf.Issuer.String(), "the certificate of that CA"
	if leaf.Issuer.String() == leaf.Subject.String() {
		by, missing = "self-signed", "this certificate"
	}
	err := problem.New("the certificate of %s is not trusted: it is %s, for the name %s", host, by, strings.Join(names, ", "))
	if l.CAFile != "" {
		return err.Hint("add %s to %s", missing, l.CAFile)
	}
	return err.Hint("--ca-file FILE, with %s", missing)
}

// namesOf returns the DNS names and IP addresses of a certificate.
func namesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// preferred returns the first name of a Service, which the API server would use, or else the first name.
func preferred(names []string) string {
	for _, name := range names {
		if strings.HasSuffix(name, ".svc") {
			return name
		}
	}
	return names[0]
}
