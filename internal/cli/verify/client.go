// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/quickack"
)

// mostCAFile is the largest size of a file with certificates, in bytes.
const mostCAFile = 4 << 20

// client returns an HTTP client that calls a webhook as the API server does: HTTP/1.1, no proxy, TLS 1.2 or later.
func (r *runner) client(h target) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: r.ServerName}
	var err error
	if config.RootCAs, err = r.roots(h); err != nil {
		return nil, err
	}
	if r.ClientCert != "" || r.ClientKey != "" {
		if r.ClientCert == "" || r.ClientKey == "" {
			return nil, problem.New("--client-cert and --client-key must be given together")
		}
		pair, err := tls.LoadX509KeyPair(r.ClientCert, r.ClientKey)
		if err != nil {
			return nil, problem.New("--client-cert %s --client-key %s: %w", r.ClientCert, r.ClientKey, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	listener := &listener{runner: r, hook: h, token: token, heard: map[string]bool{}, failed: map[string]int{}, next: &http.Transport{
		DialContext: quickack.Dial, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
	}}
	return &http.Client{Transport: listener, Timeout: 30*time.Second + time.Second, CheckRedirect: listener.redirected}, nil
}

// roots returns the CA certificates for the verification of the webhook's serving certificate, or nil for the system
// roots.
func (r *runner) roots(h target) (*x509.CertPool, error) {
	bundle, where := h.ClientConfig.CABundle, "the caBundle of "+h.Name
	switch {
	case len(h.ca) > 0:
		bundle = h.ca
	case r.CAFile != "":
		info, err := os.Stat(r.CAFile)
		if err == nil && info.Size() > mostCAFile {
			err = fmt.Errorf("%s is larger than 4 MiB, so it is not a file of certificates", r.CAFile)
		}
		if err == nil {
			bundle, err = os.ReadFile(r.CAFile)
		}
		if err != nil {
			return nil, problem.New("--ca-file: %w", err)
		}
		where = "--ca-file " + r.CAFile
	}
	if len(strings.TrimSpace(string(bundle))) == 0 && r.CAFile == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		err := problem.New("%s has no certificate", where)
		if block, _ := pem.Decode(bundle); block != nil {
			err = problem.New("%s has a %s but no certificate", where, strings.ToLower(block.Type))
		}
		return nil, err.Hint("--ca-file FILE, with the CA of the webhook's server in PEM")
	}
	return pool, nil
}

func (r *runner) token() (string, error) {
	if r.TokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(r.TokenFile)
	if err != nil {
		return "", problem.New("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", problem.New("--token-file %s: the file must have one token on one line", r.TokenFile)
	}
	return token, nil
}
