// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/devcert"
)

// A proxy is the server to which the API server sends the webhook calls. It is safe for concurrent use once all
// targets are registered.
type proxy struct {
	forward forwarder
	server  *http.Server
	url     string
	bundle  []byte
	Targets []*Target

	mu       sync.Mutex
	requests map[string]*observed // by id of the request
}

// markerPath is the path at which the proxy answers calls of the marker webhooks: see registerMarkers.
const markerPath = "/marker"

// newProxy starts a proxy on a loopback address.
func newProxy(a *API) (*proxy, error) {
	ca, err := devcert.NewCA()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := ca.Serving("127.0.0.1")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the proxy for webhook calls: %w", err)
	}
	// The API server does not use HTTP/2 for webhooks in a cluster. Handlers must see the same protocol here.
	tlsConfig.NextProtos = []string{"http/1.1"}
	p := &proxy{url: "https://" + listener.Addr().String(), bundle: ca.Bundle, requests: map[string]*observed{}}
	p.server = &http.Server{
		Handler: p, TLSConfig: tlsConfig, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:     log.New(io.Discard, "", 0), // the API server reports failed calls
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	p.forward = forwarder{api: a, onShutdown: p.server.RegisterOnShutdown}
	go func() { _ = p.server.ServeTLS(listener, "", "") }() // returns http.ErrServerClosed after close
	return p, nil
}

func (p *proxy) Close() error { return p.server.Close() }

// addTarget registers a webhook with the proxy and sets its clientConfig to the address at the proxy.
func (p *proxy) addTarget(t *Target, c *admissionregistrationv1.WebhookClientConfig) error {
	address, host, err := webhookAddress(*c)
	if err != nil {
		return err
	}
	t.prefix = "/" + strconv.Itoa(len(p.Targets))
	t.proxied, t.host = p.url+t.prefix, host
	t.original = (&url.URL{Scheme: address.Scheme, Host: address.Host}).String()
	if t.handler == nil {
		t.handler = p.forward.handler(*c, address)
	}
	at, err := url.Parse(p.url)
	if err != nil {
		return err
	}
	at.Path = path.Join(t.prefix, path.Join("/", address.Path)) // the API server joins paths in the same way
	*c = admissionregistrationv1.WebhookClientConfig{URL: new(at.String()), CABundle: p.bundle}
	p.Targets = append(p.Targets, t)
	return nil
}

// ServeHTTP handles a webhook call of the API server.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Path == markerPath {
		answerMarker(w, body)
		return
	}
	t, rest := p.target(r.URL.Path)
	id, body := takeID(body)
	rec := p.observed(id)
	if t == nil || rec == nil { // no request with this id is in progress
		panic(http.ErrAbortHandler)
	}
	call := rec.begin(t, body)
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath, r.Host = rest, "", t.host
	r.RequestURI = r.URL.RequestURI()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	answer := &answerWriter{ResponseWriter: w, prefix: t.prefix}
	defer func() {
		failure := recover()
		if failure == nil && r.Context().Err() != nil { // the API server closed the connection before the response
			failure = context.DeadlineExceeded
		}
		rec.end(call, answer, failure)
		if failure != nil {
			panic(http.ErrAbortHandler) // closes the connection, as net/http does after a panic
		}
	}()
	t.handler.ServeHTTP(answer, r)
}

func (p *proxy) target(path string) (t *Target, rest string) {
	number, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(p.Targets) {
		return p.Targets[i], "/" + rest
	}
	return nil, ""
}

// Has reports whether the webhook belongs to this engine.
func (p *proxy) Has(configuration, webhook string) bool {
	for _, t := range p.Targets {
		if t.Configuration == configuration && t.Webhook == webhook {
			return true
		}
	}
	return false
}

// RealAddresses replaces the addresses at the proxy in the messages of s with the addresses of the webhooks.
func (p *proxy) RealAddresses(s *metav1.Status) {
	var pairs []string
	for _, t := range p.Targets {
		pairs = append(pairs, t.proxied+"/", t.original+"/", t.proxied+"?", t.original+"?")
	}
	addresses := strings.NewReplacer(pairs...)
	s.Message = addresses.Replace(s.Message)
	if s.Details != nil {
		for i := range s.Details.Causes {
			s.Details.Causes[i].Message = addresses.Replace(s.Details.Causes[i].Message)
		}
	}
}

// Expect makes the proxy accept the webhook calls of the request with this id, and record them in the returned value,
// until Forget is called.
func (p *proxy) Expect(id string) *observed {
	p.mu.Lock()
	defer p.mu.Unlock()
	rec := &observed{}
	p.requests[id] = rec
	return rec
}

func (p *proxy) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.requests, id)
}

func (p *proxy) observed(id string) *observed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[id]
}
