// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/internal/devcert"
)

const (
	maxReview = 32 << 20 // bytes; enough for an object and an old object of the maximum size
	// margin is the part of a call's timeout that remains for the hook after the wait for a rebuild.
	margin = 2 * time.Second
)

// A proxy receives the calls of the API server, forwards them to the hooks, and reports each. While hooks are rebuilt,
// calls wait for the new hooks. If the timeout of a call does not allow a longer wait, the old hooks answer it.
type proxy struct {
	// secret is the prefix of all paths. It protects the proxy from other clients on the network.
	secret string
	url    *url.URL
	ca     *devcert.CA
	report func(*Admission)
	rounds *rounds

	server   *http.Server
	listener net.Listener
	ended    chan struct{}

	mu       sync.Mutex
	routes   map[string]route
	hold     chan struct{}   // closed by resume; nil if calls need not wait
	canaries map[string]bool // canaries (see registry.settle) that were called
}

// A route is the destination of the calls of a webhook.
type route struct {
	webhook, kind string
	to            *upstream
	path          string
}

// newProxy starts a proxy that listens on an address. Its certificate is valid for the host.
func newProxy(address, host string, secret string, report func(*Admission)) (*proxy, error) {
	ca, err := devcert.NewCA()
	if err != nil {
		return nil, err
	}
	config, err := ca.Serving(host)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the API server: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	p := &proxy{
		secret: "/" + secret, url: &url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}, ca: ca, report: report,
		rounds: newRounds(time.Now), listener: listener, ended: make(chan struct{}), canaries: map[string]bool{}, routes: map[string]route{},
	}
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // discards errors of aborted handshakes
	}
	go func() {
		defer close(p.ended)
		_ = p.server.Serve(tls.NewListener(listener, config)) // Close makes it return
	}()
	return p, nil
}

// close ends all connections.
func (p *proxy) close() {
	_ = p.server.Close() // its error does not matter
	<-p.ended
}

// address returns the URL for the calls of a webhook.
func (p *proxy) address(key string) string {
	u := *p.url
	u.Path = p.secret + "/" + key
	return u.String()
}

// setRoutes adds and replaces routes. Other routes stay until dropOthers.
func (p *proxy) setRoutes(routes map[string]route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, r := range routes {
		p.routes[key] = r
	}
}

// dropOthers removes all routes that are not in the argument.
func (p *proxy) dropOthers(routes map[string]route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.routes {
		if _, there := routes[key]; !there {
			delete(p.routes, key)
		}
	}
}

// pause makes calls wait until resume.
func (p *proxy) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold == nil {
		p.hold = make(chan struct{})
	}
}

func (p *proxy) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold != nil {
		close(p.hold)
		p.hold = nil
	}
}

// saw reports whether the API server has called a canary.
func (p *proxy) saw(canary string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.canaries[canary]
}

// ServeHTTP answers one call of the API server.
func (p *proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	key, ours := strings.CutPrefix(req.URL.Path, p.secret+"/")
	if !ours {
		http.NotFound(w, req)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxReview))
	if err != nil {
		http.Error(w, "the request cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		http.Error(w, "the request is not an AdmissionReview", http.StatusBadRequest)
		return
	}
	if canary, is := strings.CutPrefix(key, canaryPath); is {
		p.answerCanary(w, canary, &review)
		return
	}
	waited, done := p.wait(req)
	p.mu.Lock()
	r, there := p.routes[key]
	if there {
		r.to.calls.Add(1) // under the lock, so that no call is added after the route was replaced
		defer r.to.calls.Done()
	}
	p.mu.Unlock()
	if !there {
		http.Error(w, "admitkit dev no longer has this webhook", http.StatusNotFound)
		return
	}
	a := &Admission{Event: "admission", Webhook: r.webhook, Type: r.kind}
	a.describe(review.Request)
	a.Round = p.rounds.of(req.Header.Get("Traceparent"), key, review.Request)
	a.WaitedMilliseconds, a.BeforeChange = milliseconds(waited), !done
	called := time.Now()
	status, header, answer, err := p.forward(req, r, body)
	a.Milliseconds, a.Time = milliseconds(time.Since(called)), time.Now()
	switch {
	case req.Context().Err() != nil: // the API server has given up
		a.fail("no answer within the timeout")
	case err != nil:
		a.fail("cannot call the webhook: %v", err)
		status, header, answer = http.StatusBadGateway, http.Header{"Content-Type": {"text/plain"}}, []byte(a.Message)
	default:
		a.decide(review.Request, status, answer)
	}
	if !strings.Contains(string(review.Request.Object.Raw), devLabel) { // requests of triggerCanaries are not reported
		p.report(a) // before the response, so that reports are in the order of the calls
	}
	for _, name := range []string{"Content-Type", "Retry-After", "Warning"} {
		if value := header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer) // the API server may have disconnected
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// wait waits while hooks are rebuilt. It returns the waiting time, and whether the rebuild is done.
func (p *proxy) wait(req *http.Request) (waited time.Duration, done bool) {
	p.mu.Lock()
	hold := p.hold
	p.mu.Unlock()
	if hold == nil {
		return 0, true
	}
	began := time.Now()
	limit := 5 * time.Second
	if timeout, err := time.ParseDuration(req.URL.Query().Get("timeout")); err == nil {
		limit = max(timeout/4, timeout-margin)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-hold:
		done = true
	case <-timer.C:
	case <-req.Context().Done():
	}
	return time.Since(began), done
}

// forward sends a call to the hooks and returns their response.
func (p *proxy) forward(req *http.Request, r route, body []byte) (int, http.Header, []byte, error) {
	base, client := r.to.get()
	to := base.JoinPath(r.path)
	to.RawQuery = req.URL.RawQuery
	request, err := http.NewRequestWithContext(req.Context(), http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	for _, name := range []string{"Content-Type", "Accept", "User-Agent", "Traceparent", "Tracestate"} {
		if value := req.Header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, unwrapURL(err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReview))
	return response.StatusCode, response.Header, answer, err
}

// unwrapURL removes the method and the URL from an error. The caller's message names the webhook or its URL.
func unwrapURL(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // http.Client returns it as it is
		return e.Err
	}
	return err
}
