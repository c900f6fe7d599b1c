// SPDX-License-Identifier: Apache-2.0

// Package wire measures admissions end to end on loopback, over TLS and HTTP/1.1 like an API
// server. The server runs in a separate process.
package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/admitkit/admitkit/hack/bench/document"
	"github.com/admitkit/admitkit/hack/bench/subject"
)

// A greeting is the first output of the server process. It has what the client needs to connect.
type greeting struct {
	Addr        string
	Certificate []byte // certificate of the server, which the client trusts
}

// Serve runs the server process. It prints its address to out, serves every subject, and returns when it reads the end
// of in.
func Serve(in io.Reader, out io.Writer) error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handlers(),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Shutdown(context.Background())
	}()
	if err := json.NewEncoder(out).Encode(greeting{listener.Addr().String(), certificate.Certificate[0]}); err != nil {
		return err
	}
	if err := server.ServeTLS(listener, "", ""); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func handlers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/usage", usage)
	for _, row := range subject.Rows(document.Sizes[0]) { // the handlers are the same for all sizes
		for _, s := range row.Subjects {
			mux.Handle(path(row, s), s.Handler)
		}
	}
	return mux
}

func path(row *subject.Row, s *subject.Subject) string {
	return "/" + row.Name + "/" + strings.ReplaceAll(s.Name(), " ", "/")
}

// usage responds with the CPU time of this process in nanoseconds. If the query has collect, it collects garbage first,
// so that the next subject does not pay for the previous one.
func usage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("collect") {
		runtime.GC()
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, u.Utime.Nano()+u.Stime.Nano())
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
