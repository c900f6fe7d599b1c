// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/chain/internal/configuration"
	"github.com/admitkit/admitkit/pkg/chain/internal/inmemory"
)

// Clients configures the HTTP clients of webhooks.
type Clients struct {
	hooks   map[string]*Hook // by key
	resolve func(ctx context.Context, namespace, name string, port int32) (string, error)
	mu      sync.Mutex
	opened  map[*Hook]http.RoundTripper
}

// NewClients returns the clients of webhooks. resolve returns the address of a Service, and can be nil.
func NewClients(resolve func(context.Context, string, string, int32) (string, error), sorts ...[]*Hook) *Clients {
	c := &Clients{hooks: map[string]*Hook{}, opened: map[*Hook]http.RoundTripper{}, resolve: resolve}
	for _, hooks := range sorts {
		for _, h := range hooks {
			c.hooks[h.key] = h
		}
	}
	return c
}

// addConversion registers the conversion webhook of a definition, and puts the key of its endpoint into the
// clientConfig.
func (c *Clients) addConversion(d *apiextensionsv1.CustomResourceDefinition, handler http.Handler) {
	w := d.Spec.Conversion
	config := admissionregistrationv1.WebhookClientConfig{URL: w.Webhook.ClientConfig.URL, CABundle: w.Webhook.ClientConfig.CABundle}
	if s := w.Webhook.ClientConfig.Service; s != nil {
		config.Service = &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
	}
	configuration.DefaultClientConfig(&config, d.Name, handler)
	h := &Hook{endpoint: newEndpoint(config, "conversion", len(c.hooks), handler)}
	c.hooks[h.key] = h
	config = h.clientConfig(config)
	w.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: config.URL, CABundle: config.CABundle}
}

// shared returns the first transport that was created for a hook, so that connections are reused. The API server's code
// creates new clients if there are more webhooks than its cache of clients holds.
func (c *Clients) shared(h *Hook, transport http.RoundTripper) http.RoundTripper {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened[h] == nil {
		c.opened[h] = transport
	}
	return c.opened[h]
}

// Wrap is an AuthenticationInfoResolverWrapper. The returned resolver finds the webhook by its placeholder host, and
// returns the client configuration of that webhook.
func (c *Clients) Wrap(webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
	return &webhookutil.AuthenticationInfoResolverDelegator{ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
		host, _, err := net.SplitHostPort(hostPort)
		if err != nil {
			return nil, err
		}
		h := c.hooks[host]
		if h == nil {
			return nil, fmt.Errorf("no webhook is at %s", hostPort)
		}
		return c.config(h), nil
	}}
}

// config returns the client configuration of a hook, with the API server's defaults (setGlobalDefaults).
func (c *Clients) config(h *Hook) *rest.Config {
	config := &rest.Config{UserAgent: "kube-apiserver-admission", Timeout: 30 * time.Second}
	if h.service != nil && h.handler == nil {
		config.TLSClientConfig.ServerName = h.service.Name + "." + h.service.Namespace + ".svc"
		if c.resolve != nil {
			config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				address, err := c.resolve(ctx, h.service.Namespace, h.service.Name, *h.service.Port)
				if err != nil {
					return nil, err
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}
		}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if h.handler != nil {
			next = inmemory.Transport{Handler: h.handler}
		} else {
			next = c.shared(h, next)
		}
		return &hookTransport{hook: h, next: next}
	})
	return config
}

// Close closes idle connections.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rt := range c.opened {
		utilnet.CloseIdleConnectionsFor(rt)
	}
}

// A recorder records the webhook calls of one request.
type recorder interface {
	// Begin is called before each attempt to send a body to a hook. The returned function is called with the response.
	Begin(h *Hook, body []byte) (end func(status int, answer []byte, err error))
}

type recorderKey struct{}

// WithRecorder returns a copy of ctx. r records the webhook calls that are made with this copy.
func WithRecorder(ctx context.Context, r recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// hookTransport is the transport of one webhook.
type hookTransport struct {
	hook *Hook
	next http.RoundTripper
}

// WrappedRoundTripper returns the wrapped transport, so that idle connections can be closed.
func (t *hookTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

var _ utilnet.RoundTripperWrapper = (*hookTransport)(nil)

func (t *hookTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := req.Clone(req.Context())
	body, err := readAll(req.Body, req.ContentLength)
	if err != nil {
		return nil, err
	}
	if req.Body != nil {
		sent.Body = io.NopCloser(bytes.NewReader(body))
		sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	// A redirect may lead to another host.
	if sent.URL.Host == t.hook.key {
		sent.URL.Host, sent.Host = t.hook.host, t.hook.host
	}
	r, recorded := req.Context().Value(recorderKey{}).(recorder)
	if !recorded || t.hook.WebhookAccessor == nil { // calls of conversion webhooks are not recorded
		return t.next.RoundTrip(sent)
	}
	end := r.Begin(t.hook, body)
	resp, err := t.next.RoundTrip(sent)
	if err != nil {
		end(0, nil, err)
		return nil, err
	}
	answer, err := readAll(resp.Body, resp.ContentLength)
	end(resp.StatusCode, answer, err)
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(answer), failing{err}))
	resp.Request = req
	return resp, nil
}

func readAll(body io.ReadCloser, length int64) ([]byte, error) {
	if body == nil || body == http.NoBody {
		return nil, nil
	}
	defer func() { _ = body.Close() }()
	var b bytes.Buffer
	if length > 0 && length < 1<<20 {
		b.Grow(int(length) + bytes.MinRead)
	}
	_, err := b.ReadFrom(body)
	return b.Bytes(), err
}

// failing is a reader without data. It returns err, or io.EOF if err is nil.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
