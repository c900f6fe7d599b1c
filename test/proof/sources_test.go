// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/pkg/certs"
)

func newSource(s Settings) (certs.Source, error) {
	switch s.Certificates {
	case Static:
		pair, err := tls.X509KeyPair(s.Cert, s.Key)
		return fixed{&pair}, err
	case SelfManaged:
		return newSelfManaged(s.Rotation)
	case Naive:
		return newNaive(s.Rotation)
	}
	return nil, fmt.Errorf("unknown certificate source %q", s.Certificates)
}

func newSelfManaged(r Rotation) (certs.Source, error) {
	config, err := configFor(r)
	if err != nil {
		return nil, err
	}
	return certs.NewSelfManaged(certs.Options{
		Config: config, Namespace: r.Namespace, Secret: r.Secret, DNSNames: r.Hosts,
		Targets: []certs.Target{
			{Kind: certs.MutatingWebhookConfiguration, Name: r.Configuration},
			{Kind: certs.ValidatingWebhookConfiguration, Name: r.Configuration},
		},
		CALifetime: r.CALifetime, LeafLifetime: r.LeafLifetime, Settle: r.Settle, ClockSkew: r.Skew, Interval: r.Interval,
	})
}

// A fixed is a source with one certificate that never changes.
type fixed struct{ pair *tls.Certificate }

func (f fixed) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (f fixed) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.pair, nil }

func (f fixed) Bundle() []byte { return nil }

func (f fixed) Status() certs.Status { return certs.Status{Trusted: true} }

// configFor returns a client configuration for the API server. Each request and each response is delayed by less than
// r.MaxLag.
func configFor(r Rotation) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(r.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1
	if r.MaxLag > 0 {
		l := &lag{max: r.MaxLag, random: rand.New(rand.NewPCG(r.Seed, r.Seed))}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return lagging{next, l} })
	}
	return config, nil
}

// lag delays requests by random times below max.
type lag struct {
	max    time.Duration
	mu     sync.Mutex
	random *rand.Rand
}

func (l *lag) wait(ctx context.Context) {
	l.mu.Lock()
	d := time.Duration(l.random.Int64N(int64(l.max)))
	l.mu.Unlock()
	_ = Wait(ctx, d)
}

// lagging delays requests and responses, and each read of the events of a watch.
type lagging struct {
	next http.RoundTripper
	lag  *lag
}

func (l lagging) RoundTrip(req *http.Request) (*http.Response, error) {
	l.lag.wait(req.Context())
	resp, err := l.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if req.URL.Query().Get("watch") != "" {
		resp.Body = laggingBody{resp.Body, req.Context(), l.lag}
		return resp, nil
	}
	l.lag.wait(req.Context())
	return resp, nil
}

type laggingBody struct {
	io.ReadCloser
	ctx context.Context
	lag *lag
}

func (b laggingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.lag.wait(b.ctx)
	return n, err
}
