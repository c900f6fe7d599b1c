// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// A fault is what a proxy does to requests.
type fault int

const (
	works   fault = iota
	cut           // ends watches, and rejects new ones
	hanging       // answers nothing but watches
	gone          // closes every connection
)

// A proxy is between the program and the API server. It sends requests with the credentials of a client
// configuration.
type proxy struct {
	*httptest.Server
	forward *httputil.ReverseProxy
	mu      sync.Mutex
	fault   fault
	next    chan struct{} // closed when the fault changes
	running map[*http.Request]context.CancelFunc
}

func newProxy(t *testing.T, to *rest.Config) *proxy {
	t.Helper()
	target, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(to)
	if err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	p := &proxy{next: make(chan struct{}), running: map[*http.Request]context.CancelFunc{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ErrorLog = quiet
	p.Start()
	t.Cleanup(func() { p.inject(gone); p.Close() })
	return p
}

// inject changes the fault. Requests that hang continue.
func (p *proxy) inject(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	close(p.next)
	p.next = make(chan struct{})
	for r, end := range p.running {
		if f == gone || f == cut && isWatch(r) {
			end()
		}
	}
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	p.mu.Lock()
	f, next := p.fault, p.next
	p.running[r] = end
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, r)
	}()
	if f == hanging && !isWatch(r) {
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
	if f == gone || f == cut && isWatch(r) || ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	p.forward.ServeHTTP(w, r.WithContext(ctx))
}
