// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
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

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/devcert"
)

// A proxy is the server to which the API server sends the webhook calls. It is safe for concurrent use once all
// targets are registered.
type proxy struct {
	api     *api
	server  *http.Server
	url     string
	bundle  []byte
	targets []*target

	mu       sync.Mutex
	requests map[string]*observed // by id
}

// A target is a registered webhook and its real address.
type target struct {
	configuration, webhook string
	mutating               bool
	index                  int // among all of its sort, in the order in which they are asked
	failurePolicy          admissionregistrationv1.FailurePolicyType
	handler                http.Handler // answers the calls
	prefix                 string       // of paths at the proxy
	proxied, original      string       // the URLs up to the path
	host                   string       // what the Host header would have been
}

const markerPath = "/marker"

// newProxy listens on loopback.
func newProxy(a *api) (*proxy, error) {
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
		return nil, fmt.Errorf("the proxy cannot listen: %w", err)
	}
	// Webhooks in a cluster are never offered h2: what handlers see is to be the same here.
	tlsConfig.NextProtos = []string{"http/1.1"}
	p := &proxy{api: a, url: "https://" + listener.Addr().String(), bundle: ca.Bundle, requests: map[string]*observed{}}
	p.server = &http.Server{
		Handler: p, TLSConfig: tlsConfig, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:     log.New(io.Discard, "", 0), // what fails here, the API server tells of
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }() // ends with an error when it is closed
	return p, nil
}

func (p *proxy) close() error { return p.server.Close() }

// take makes the proxy answer for a webhook and points its clientConfig at the proxy.
func (p *proxy) take(t *target, c *admissionregistrationv1.WebhookClientConfig) error {
	address, host, err := webhookAddress(*c)
	if err != nil {
		return err
	}
	t.prefix = "/" + strconv.Itoa(len(p.targets))
	t.proxied, t.host = p.url+t.prefix, host
	t.original = (&url.URL{Scheme: address.Scheme, Host: address.Host}).String()
	if t.handler == nil {
		t.handler = p.forward(*c, address)
	}
	at, err := url.Parse(p.url)
	if err != nil {
		return err
	}
	at.Path = path.Join(t.prefix, path.Join("/", address.Path)) // as the API server joins them
	*c = admissionregistrationv1.WebhookClientConfig{URL: new(at.String()), CABundle: p.bundle}
	p.targets = append(p.targets, t)
	return nil
}

// webhookAddress returns where the API server would call a webhook, and the Host header.
func webhookAddress(c admissionregistrationv1.WebhookClientConfig) (*url.URL, string, error) {
	switch {
	case c.Service != nil:
		port := int32(443)
		if c.Service.Port != nil {
			port = *c.Service.Port
		}
		host := c.Service.Name + "." + c.Service.Namespace + ".svc"
		u := &url.URL{Scheme: "https", Host: host + ":" + strconv.Itoa(int(port))}
		if c.Service.Path != nil {
			u.Path = *c.Service.Path
		}
		return u, u.Host, nil
	case c.URL != nil:
		u, err := url.Parse(*c.URL)
		if err != nil {
			return nil, "", err
		}
		return u, u.Host, nil
	}
	u := &url.URL{Scheme: "https", Host: "handler.invalid"}
	return u, u.Host, nil
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
	if t == nil || rec == nil { // a call of a request that nobody waits for any more
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
		if failure == nil && r.Context().Err() != nil { // nobody read the answer
			failure = context.DeadlineExceeded
		}
		rec.end(call, answer, failure)
		if failure != nil {
			panic(http.ErrAbortHandler) // what a server does whose handler panics
		}
	}()
	t.handler.ServeHTTP(answer, r)
}

func (p *proxy) target(path string) (t *target, rest string) {
	number, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(p.targets) {
		return p.targets[i], "/" + rest
	}
	return nil, ""
}

// has reports whether a webhook is one of the engine's.
func (p *proxy) has(configuration, webhook string) bool {
	for _, t := range p.targets {
		if t.configuration == configuration && t.webhook == webhook {
			return true
		}
	}
	return false
}

// realAddresses puts the addresses of webhooks into messages in place of those at the proxy.
func (p *proxy) realAddresses(s *metav1.Status) {
	var pairs []string
	for _, t := range p.targets {
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

// expect makes the proxy answer the calls of a request, until it is forgotten.
func (p *proxy) expect(id string) *observed {
	p.mu.Lock()
	defer p.mu.Unlock()
	rec := &observed{}
	p.requests[id] = rec
	return rec
}

func (p *proxy) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.requests, id)
}

func (p *proxy) observed(id string) *observed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[id]
}

// takeID returns the id of the request that a review is of, and the review without it. The
// first place in a review where the text can stand is the user's extra: objects come later, and
// in strings the quotes would be escaped.
func takeID(review []byte) (id string, without []byte) {
	const entry = `"` + requestKey + `":["`
	from := bytes.Index(review, []byte(entry))
	if from < 0 {
		return "", review
	}
	value := review[from+len(entry):]
	length := bytes.IndexByte(value, '"')
	if length < 0 || !bytes.HasPrefix(value[length:], []byte(`"]`)) {
		return "", review
	}
	id = string(value[:length])
	before, after := review[:from], value[length+2:]
	const alone = `"extra":{`
	switch {
	case bytes.HasSuffix(before, []byte(alone)) && bytes.HasPrefix(after, []byte("}")):
		before, after = bytes.TrimSuffix(before[:len(before)-len(alone)], []byte(",")), after[1:]
	case bytes.HasSuffix(before, []byte(",")):
		before = before[:len(before)-1]
	default:
		after = bytes.TrimPrefix(after, []byte(","))
	}
	return id, append(before[:len(before):len(before)], after...)
}

// answerMarker denies: that is how a marker shows.
func answerMarker(w http.ResponseWriter, body []byte) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		panic(http.ErrAbortHandler)
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: markerMessage}}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(review))
}
