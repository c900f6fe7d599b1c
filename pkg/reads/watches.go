// SPDX-License-Identifier: Apache-2.0

package reads

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Watches observes the watches of a client's informers, so that [Reader]s can count reads from a cache whose watch is
// cut. Wrap the transport of the client with it before the client is created:
//
//	watches, err := reads.NewWatches(deps.Metrics)
//	config.Wrap(watches.Transport)
//	client, err := kubernetes.NewForConfig(config)
//
// Use the client only for informers and single requests: a watch that its caller ends counts as cut. A Watches is safe
// for concurrent use.
type Watches struct {
	mu        sync.Mutex
	resources map[resource]*watched
}

// NewWatches returns a Watches. It registers the gauge admitkit_watch_cut with the label resource, which is 1 while a
// watch is cut. If the registerer already has a Watches, NewWatches returns that one. Nil means no metrics.
func NewWatches(metrics prometheus.Registerer) (*Watches, error) {
	w := &Watches{resources: map[resource]*watched{}}
	if metrics == nil {
		return w, nil
	}
	err := metrics.Register(w)
	var same prometheus.AlreadyRegisteredError
	if errors.As(err, &same) {
		if other, ok := same.ExistingCollector.(*Watches); ok {
			return other, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reads: %w", err)
	}
	return w, nil
}

// cutAfter is how long a watch may be closed before it counts as cut. The API server ends each watch after a while, and
// an informer opens the next one at once.
const cutAfter = time.Second

// A resource is a resource of the API, such as namespaces or ingresses.networking.k8s.io.
type resource struct{ group, name string }

func (r resource) String() string { return strings.TrimSuffix(r.name+"."+r.group, ".") }

// watched has the watches of a resource, by the objects that they select.
type watched struct {
	mu      sync.Mutex
	watches map[string]*watch
}

// A watch is a watch that an informer opens again and again.
type watch struct {
	open   int       // responses that have not ended
	closed time.Time // when the last response ended or, before the first one, when the watch was first requested
}

// Cut returns a function for [Options.Stale]. It reports whether a watch of the resource has been closed for more than a
// second, or whether there has been none yet. A connection that hangs counts as open until the client finds out, which
// takes a client of client-go up to 45 seconds.
func (w *Watches) Cut(group, resourceName string) func() bool {
	return w.watched(resource{group, resourceName}).cut
}

func (w *Watches) watched(r resource) *watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.resources[r] == nil {
		w.resources[r] = &watched{watches: map[string]*watch{}}
	}
	return w.resources[r]
}

func (w *watched) cut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.watches {
		if one.open == 0 && time.Since(one.closed) > cutAfter {
			return true
		}
	}
	return len(w.watches) == 0
}

// request records that a watch was requested.
func (w *watched) request(objects string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[objects] == nil {
		w.watches[objects] = &watch{closed: time.Now()}
	}
}

// opened records that a requested watch has a response, and closed that the response has ended.
func (w *watched) opened(objects string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches[objects].open++
}

func (w *watched) closed(objects string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches[objects].open--
	w.watches[objects].closed = time.Now()
}

// Transport returns a transport that sends requests with next, and observes those that are watches.
func (w *Watches) Transport(next http.RoundTripper) http.RoundTripper { return &transport{w, next} }

type transport struct {
	watches *Watches
	next    http.RoundTripper
}

// WrappedRoundTripper returns the wrapped transport, for which client-go asks.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("watch") != "true" && query.Get("watch") != "1" {
		return t.next.RoundTrip(r)
	}
	of, objects := t.watches.watched(resourceIn(r.URL.Path)), r.URL.Path+"?"+query.Get("labelSelector")+"&"+query.Get("fieldSelector")
	of.request(objects)
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK {
		of.opened(objects)
		response.Body = &body{ReadCloser: response.Body, ended: sync.OnceFunc(func() { of.closed(objects) })}
	}
	return response, err
}

// resourceIn returns the resource of a path such as /apis/apps/v1/namespaces/shop/deployments. The address of the API
// server may add a prefix to the path.
func resourceIn(of string) resource {
	_, after, _ := strings.Cut(of, "/apis/") // the core group has /api/ instead
	group, _, _ := strings.Cut(after, "/")
	return resource{group, path.Base(of)}
}

// A body calls ended when the response has ended: after an error, which may be io.EOF, or Close.
type body struct {
	io.ReadCloser
	ended func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended()
	}
	return n, err
}

func (b *body) Close() error {
	b.ended()
	return b.ReadCloser.Close()
}

var cutMetric = prometheus.NewDesc("admitkit_watch_cut",
	"Whether a watch of the caches of the hooks is cut (1) or not (0), so that hooks may read old objects, by resource.", []string{"resource"}, nil)

// Describe implements prometheus.Collector.
func (w *Watches) Describe(to chan<- *prometheus.Desc) { to <- cutMetric }

// Collect implements prometheus.Collector.
func (w *Watches) Collect(to chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, of := range w.resources {
		value := 0.0
		if of.cut() {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(cutMetric, prometheus.GaugeValue, value, r.String())
	}
}
