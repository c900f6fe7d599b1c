// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"time"
)

// readCertificates reads those of a PEM file, the leaf first, as in tls.crt.
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
		return nil, errors.New("no certificate in PEM form")
	}
	return all, nil
}

// probe asks a server for its certificates. It trusts everybody, since it says nothing and only looks.
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
