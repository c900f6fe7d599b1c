// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A register is an observer that records the names of the called hooks.
type register struct {
	mu     sync.Mutex
	called []string
}

func (r *register) Begin(ctx context.Context, h *webhook.Hook, _ *http.Request) (context.Context, func(*webhook.Observation)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.called = append(r.called, h.Path())
	return ctx, nil
}

// A starting program makes about thirty marker requests, and each is denied. Observers must not see these calls, so
// that metrics do not count the denials.
func TestMarkersAreNotObserved(t *testing.T) {
	i, _ := newFake(t, options(), denying("one.example.com"), labelling("two.example.com"))
	seen := &register{}
	client, url := served(t, webhook.Options{Observers: []webhook.Observer{seen}, Logger: i.o.Logger}, i.Hooks()...)
	for _, hook := range i.Hooks() {
		marker := strings.HasPrefix(hook.Name(), "marker.")
		about := `"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"object":{"apiVersion":"v1","kind":"Pod"}`
		if marker {
			about = `"kind":{"group":"coordination.k8s.io","version":"v1","kind":"Lease"},"resource":{"group":"coordination.k8s.io","version":"v1","resource":"leases"},` +
				`"object":{"apiVersion":"coordination.k8s.io/v1","kind":"Lease"}`
		}
		review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` + about + `}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+hook.Path()+"?timeout=5s", strings.NewReader(review))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || strings.Contains(string(text), markerText) != marker {
			t.Errorf("%s answers %s (%v)", hook.Path(), text, err)
		}
	}
	slices.Sort(seen.called)
	if want := []string{"/mutate/two.example.com", "/validate/one.example.com"}; !slices.Equal(seen.called, want) {
		t.Errorf("observed are calls of %v", seen.called)
	}
}

// served serves hooks on loopback until the end of the test. It returns the server's URL and a client that trusts it.
func served(t *testing.T, o webhook.Options, hooks ...*webhook.Hook) (client *http.Client, url string) {
	t.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	if o.TLSConfig, err = ca.Serving("127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if o.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	o.ShutdownDelay = -1
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- webhook.NewServer(o, hooks...).Start(ctx) }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &http.Client{Transport: transport}, "https://" + o.Listener.Addr().String()
}
