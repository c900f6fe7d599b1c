// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"time"

	"github.com/admitkit/admitkit/internal/cli/objects"
)

// severalServers reports whether the configurations name more than one server.
func severalServers(all []*objects.Object) bool {
	servers := map[string]bool{}
	for _, o := range all {
		var configuration struct {
			Webhooks []struct {
				ClientConfig struct {
					URL     string
					Service struct{ Namespace, Name string }
				}
			}
		}
		if !isConfiguration(o) || json.Unmarshal(o.JSON, &configuration) != nil {
			continue
		}
		for _, w := range configuration.Webhooks {
			u, _ := url.Parse(w.ClientConfig.URL) // an invalid URL is a finding
			host := ""
			if u != nil {
				host = u.Host
			}
			servers[host+" "+w.ClientConfig.Service.Namespace+"/"+w.ClientConfig.Service.Name] = true
		}
	}
	return len(servers) > 1
}

// readCertificates reads the certificates of a PEM file such as tls.crt, in the order of the file. The serving
// certificate comes first.
func readCertificates(name string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("the file has no certificate in PEM")
	}
	return all, nil
}

// probe returns the certificates that a server presents. It does not verify them, and sends no data to the server.
func probe(ctx context.Context, address string) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }() // nothing was sent
	return connection.(*tls.Conn).ConnectionState().PeerCertificates, nil
}
