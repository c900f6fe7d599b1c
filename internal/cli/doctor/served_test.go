// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A servedWebhook is a webhook that this process serves for one Pod.
type servedWebhook struct {
	// certificate is what the server presents; nil makes the handshake fail.
	certificate *tls.Certificate
	// plain makes the server speak HTTP without TLS.
	plain bool
	// path is where the hook is.
	path string
	// apis is the path below which an aggregated API server answers.
	apis    string
	decide  func(context.Context, *webhook.Request[corev1.ConfigMap]) error
	address string
}

// serve starts the server on loopback until the end of the test.
func (s *servedWebhook) serve(t *testing.T, name string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.address = listener.Addr().String()
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps"))}, s.decide)
	mux := http.NewServeMux()
	mux.Handle(s.path, hook)
	mux.HandleFunc("/convert", func(http.ResponseWriter, *http.Request) {})                      // a conversion webhook
	mux.HandleFunc(s.apis, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }) // an aggregated API server
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate, nil },
	}}
	go func() { // it returns when the test closes the server
		if s.plain {
			_ = server.Serve(listener)
		} else {
			_ = server.ServeTLS(listener, "", "")
		}
	}()
	t.Cleanup(func() { _ = server.Close() })
}

func allow(context.Context, *webhook.Request[corev1.ConfigMap]) error { return nil }
