// SPDX-License-Identifier: Apache-2.0

// Package trust configures the TLS connections of commands to webhooks.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/admitkit/admitkit/internal/problem"
)

// Config returns the configuration of a client that trusts the CAs of a PEM file, and expects a name in the certificate of
// the server. Both may be empty: then the system's CAs and the name of the address count. Errors name the flag --ca-file.
func Config(caFile, serverName string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	if caFile == "" {
		return config, nil
	}
	data, err := os.ReadFile(caFile)
	if err != nil {
		return nil, problem.New("--ca-file: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(data) {
		return nil, problem.New("--ca-file %s has no certificate", caFile).Hint("--ca-file FILE, with the CA of the webhook's certificate in PEM")
	}
	return config, nil
}
