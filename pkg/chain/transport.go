// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain/internal/inmemory"
)

// An endpoint is the address of a webhook. The API server's code sees a unique host in its place, the key, because it
// shares clients between webhooks with one address and does not pass on the name of the webhook. The transport sends to,
// dials and verifies the real host.
type endpoint struct {
	handler http.Handler
	key     string
	host    string // as the API server shows it
	service *admissionregistrationv1.ServiceReference
}

func newEndpoint(c admissionregistrationv1.WebhookClientConfig, sort string, index int, handler http.Handler) endpoint {
	e := endpoint{handler: handler, key: fmt.Sprintf("%s-%d.admitkit.invalid", sort, index)}
	if s := c.Service; s != nil {
		e.service = s
		e.host = net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(*s.Port)))
		return e
	}
	u, err := url.Parse(*c.URL)
	if err != nil {
		return e // it has been validated
	}
	e.host = u.Host
	if ip := net.ParseIP(u.Hostname()); strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback() {
		// Only to these hosts does the API server speak HTTP/2.
		block := 200
		if sort == "validating" {
			block = 201
		}
		e.key = fmt.Sprintf("127.%d.%d.%d", block, index>>8&255, index&255)
	}
	return e
}

// clientConfig is that of the endpoint with its key for a host.
func (e endpoint) clientConfig(c admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.WebhookClientConfig {
	u := url.URL{Scheme: "https", Host: e.key}
	if e.service != nil {
		u.Path = ptr.Deref(e.service.Path, "")
	} else if own, err := url.Parse(*c.URL); err == nil {
		u.Path, u.RawPath = own.Path, own.RawPath
	}
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(u.String()), CABundle: c.CABundle}
}

// clients make the clients of webhooks.
type clients struct {
	hooks   map[string]*hook // by key
	resolve func(ctx context.Context, namespace, name string, port int32) (string, error)
	mu      sync.Mutex
	opened  map[*hook]http.RoundTripper
}

// sole is the transport to a hook, the same for all its clients: the API server's code makes new
// ones where there are more webhooks than it keeps clients for.
func (c *clients) sole(h *hook, transport http.RoundTripper) http.RoundTripper {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened[h] == nil {
		c.opened[h] = transport
	}
	return c.opened[h]
}

// wrap is an AuthenticationInfoResolverWrapper: it is asked for the configuration of each client.
func (c *clients) wrap(webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
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

// config has what the API server sets for all webhooks (setGlobalDefaults).
func (c *clients) config(h *hook) *rest.Config {
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
			next = c.sole(h, next)
		}
		return &hookTransport{hook: h, next: next}
	})
	return config
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rt := range c.opened {
		utilnet.CloseIdleConnectionsFor(rt)
	}
}

// hookTransport is the transport of one webhook.
type hookTransport struct {
	hook *hook
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
	// A redirect may lead elsewhere.
	if sent.URL.Host == t.hook.key {
		sent.URL.Host, sent.Host = t.hook.host, t.hook.host
	}
	if t.hook.WebhookAccessor == nil { // a conversion webhook
		return t.next.RoundTrip(sent)
	}
	call := runOf(req.Context()).began(t.hook, body)
	resp, err := t.next.RoundTrip(sent)
	if err != nil {
		call.ended(0, nil, err)
		return nil, err
	}
	answer, err := readAll(resp.Body, resp.ContentLength)
	call.ended(resp.StatusCode, answer, err)
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

// failing is the end of a body that broke off, or just its end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
