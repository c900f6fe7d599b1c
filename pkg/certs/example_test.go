// SPDX-License-Identifier: Apache-2.0

package certs_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/certs"
)

// Files serves the certificate in a mounted Secret of cert-manager. It serves renewals without a restart.
func ExampleFiles() {
	const dir = "/var/run/certs" // where the Secret is mounted
	source := certs.Files(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), certs.FilesOptions{
		CAFile: filepath.Join(dir, "ca.crt"),
	})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		if err := source.Start(ctx); err != nil {
			log.Fatal(err) // names the file and its error
		}
	}()
	server := &http.Server{Addr: ":9443", TLSConfig: certs.TLSConfig(source)}
	log.Print(server.ListenAndServeTLS("", ""))
}

// Static serves one certificate that never changes, for example in a test.
func ExampleStatic() {
	ca, err := devcert.NewCA() // a certificate for this example
	if err != nil {
		log.Fatal(err)
	}
	serving, err := ca.Serving("localhost")
	if err != nil {
		log.Fatal(err)
	}
	source := certs.Static(serving.Certificates[0], ca.Bundle)

	certificate, err := certs.TLSConfig(source).GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("for", certificate.Leaf.DNSNames)
	fmt.Println("ready:", certs.Ready(source)(context.Background()) == nil)
	// Output:
	// for [localhost]
	// ready: true
}
