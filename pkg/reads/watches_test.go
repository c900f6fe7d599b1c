// SPDX-License-Identifier: Apache-2.0

package reads_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/pkg/reads"
)

// An answer is a transport that answers each request with it.
type answer struct {
	code int
	body io.ReadCloser
	err  error
}

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: a.body}, nil
}

// send sends a GET through the observed transport and returns the body of the response, which is nil after an error.
func send(t *testing.T, w *reads.Watches, url string, a answer) io.ReadCloser {
	t.Helper()
	if a.body == nil {
		a.body = http.NoBody
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cluster.example.com"+url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := w.Transport(a).RoundTrip(r)
	if err != nil {
		return nil
	}
	return response.Body
}

func newWatches(t *testing.T) *reads.Watches {
	t.Helper()
	w, err := reads.NewWatches(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// open opens a watch, and returns what the API server writes to it.
func open(t *testing.T, w *reads.Watches, url string) (events *io.PipeWriter, response io.ReadCloser) {
	t.Helper()
	body, events := io.Pipe()
	return events, send(t, w, url, answer{code: http.StatusOK, body: body})
}

const (
	watchNamespaces = "/api/v1/namespaces?watch=true&resourceVersion=7"
	grace           = time.Second
)

// TestAWatchIsCut ends the response of a watch in different ways. The watch must count as cut a moment later, until the
// client opens it again.
func TestAWatchIsCut(t *testing.T) {
	for reason, end := range map[string]func(t *testing.T, events *io.PipeWriter, response io.ReadCloser){
		"the API server ends it": func(t *testing.T, events *io.PipeWriter, response io.ReadCloser) {
			go func() { _ = events.Close() }()
			if _, err := io.ReadAll(response); err != nil {
				t.Error(err)
			}
			_ = response.Close() // must not count a second time
		},
		"the connection breaks": func(t *testing.T, events *io.PipeWriter, response io.ReadCloser) {
			broken := errors.New("connection reset")
			go func() { _ = events.CloseWithError(broken) }()
			if _, err := io.ReadAll(response); !errors.Is(err, broken) {
				t.Error(err)
			}
		},
		"the client closes it": func(_ *testing.T, _ *io.PipeWriter, response io.ReadCloser) { _ = response.Close() },
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatches(t)
				cut := w.Cut("", "namespaces")
				expect := func(when string, want bool) {
					t.Helper()
					if cut() != want {
						t.Errorf("%s: cut is %v", when, !want)
					}
				}
				expect("without a watch", true)
				events, response := open(t, w, watchNamespaces)
				<-time.After(time.Hour)
				expect("while it is open", false)
				end(t, events, response)
				<-time.After(grace)
				expect("at once", false)
				send(t, w, watchNamespaces, answer{err: errors.New("connection refused")})
				send(t, w, watchNamespaces, answer{code: http.StatusServiceUnavailable})
				<-time.After(time.Millisecond)
				expect("after a moment", true)
				_, again := open(t, w, watchNamespaces)
				expect("when it is open again", false)
				_ = again.Close()
			})
		})
	}
}

// TestWatchesThatNeverOpen checks that a watch whose first request fails counts as cut.
func TestWatchesThatNeverOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatches(t)
		send(t, w, watchNamespaces, answer{err: errors.New("connection refused")})
		<-time.After(grace + time.Millisecond)
		if !w.Cut("", "namespaces")() {
			t.Error("the watch is not cut")
		}
	})
}

// TestWatchesAreToldApart opens watches of several resources, of which one is limited to a namespace.
func TestWatchesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatches(t)
		_, namespaces := open(t, w, watchNamespaces)
		defer func() { _ = namespaces.Close() }()
		_, ingresses := open(t, w, "/proxy/apis/networking.k8s.io/v1/namespaces/shop/ingresses?watch=1")
		defer func() { _ = ingresses.Close() }()
		_, one := open(t, w, "/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Da")
		defer func() { _ = one.Close() }()
		_, other := open(t, w, "/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Db")
		_ = other.Close()
		send(t, w, "/api/v1/secrets?limit=500", answer{code: http.StatusOK})
		<-time.After(grace + time.Millisecond)
		for _, in := range []struct {
			group, resource string
			want            bool
		}{
			{"", "namespaces", false}, {"networking.k8s.io", "ingresses", false}, {"", "ingresses", true},
			{"", "configmaps", true}, // one of two
			{"", "secrets", true},    // a list is no watch
		} {
			if got := w.Cut(in.group, in.resource)(); got != in.want {
				t.Errorf("%s.%s: cut is %v", in.resource, in.group, got)
			}
		}
	})
}

// TestWatchMetrics checks the gauge, and that several callers share one.
func TestWatchMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	w, err := reads.NewWatches(registry)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := reads.NewWatches(registry); err != nil || again != w {
		t.Errorf("got another one, %v", err)
	}
	_, response := open(t, w, watchNamespaces)
	defer func() { _ = response.Close() }()
	w.Cut("apps", "deployments")
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "admitkit_watch_cut" {
		t.Fatalf("got %v, %v", families, err)
	}
	var got []string
	for _, m := range families[0].GetMetric() {
		got = append(got, m.GetLabel()[0].GetValue()+"="+string('0'+rune(m.GetGauge().GetValue())))
	}
	if text := strings.Join(got, " "); text != "deployments.apps=1 namespaces=0" {
		t.Errorf("got %s", text)
	}
	registry = prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "admitkit_watch_cut"}))
	if _, err := reads.NewWatches(registry); err == nil {
		t.Error("another collector with the name is not an error")
	}
}

// TestTransportUnwraps checks that client-go finds the wrapped transport.
func TestTransportUnwraps(t *testing.T) {
	next := answer{code: http.StatusOK}
	wrapper, ok := newWatches(t).Transport(next).(interface{ WrappedRoundTripper() http.RoundTripper })
	if !ok || wrapper.WrappedRoundTripper() != next {
		t.Error("the transport does not return the one that it wraps")
	}
}
