// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// requestTimeout limits the duration of each request, except watches.
const requestTimeout = 10 * time.Second

// A Client reads, writes and watches the Secret and the targets through a real API server. It is safe for concurrent
// use.
type Client struct {
	client       dynamic.Interface
	namespace    string
	secretName   string
	fieldManager string
	timeout      time.Duration // of a request
	retry        retry         // of watches
	clockAhead   *atomic.Int64 // see Ahead, in nanoseconds
}

// Ahead returns how far this machine's clock is ahead of the API server's. It is negative if this clock is
// behind.
func (k *Client) Ahead() time.Duration { return time.Duration(k.clockAhead.Load()) }

// New returns a client for the targets and for the Secret of this name. It copies config. clock returns the time of
// this machine. fieldManager is the field manager that owns the caBundles.
func New(config *rest.Config, clock func() time.Time, namespace, secretName, fieldManager string) (*Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // a timeout would end watches; other requests have requestTimeout
	if config.QPS == 0 {
		config.QPS, config.Burst = 20, 40
	}
	k := &Client{
		namespace: namespace, secretName: secretName, fieldManager: fieldManager,
		timeout: requestTimeout, retry: retry{first: time.Second, longest: 2 * time.Minute}, clockAhead: new(atomic.Int64),
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &clockComparer{next, clock, func(d time.Duration) { k.clockAhead.Store(int64(d)) }}
	})
	var err error
	if k.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	return k, nil
}

// An objectRef identifies the object of a request. Its String is used in error messages.
type objectRef struct {
	kind, name string
	resource   schema.GroupVersionResource
	namespace  string // empty if cluster-scoped
}

func (p objectRef) String() string {
	if p.namespace != "" {
		return fmt.Sprintf("%s %s/%s", p.kind, p.namespace, p.name)
	}
	return p.kind + " " + p.name
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

func (k *Client) secret() objectRef {
	return objectRef{kind: "Secret", name: k.secretName, resource: secrets, namespace: k.namespace}
}

func (k *Client) on(p objectRef) dynamic.ResourceInterface {
	if p.namespace == "" {
		return k.client.Resource(p.resource)
	}
	return k.client.Resource(p.resource).Namespace(p.namespace)
}

// request returns a context with the timeout of a request and without a logger: at high levels,
// client-go logs request bodies, which contain the key of the CA.
func (k *Client) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(withoutLogger(ctx), k.timeout)
}

func withoutLogger(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

// explain adds the object to an error, and the missing permission if that is the cause.
func (k *Client) explain(err error, verb string, p objectRef) error {
	if isMissingRight(err, verb) {
		return fmt.Errorf("%s: no permission to %s it: grant the verb %s on %s, as the manifest of install.RBAC does: %w",
			p, verb, verb, p.resource.GroupResource(), err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: cannot %s it: no response within %s: %w", p, verb, k.timeout, err)
	}
	return fmt.Errorf("%s: cannot %s it: %w", p, verb, err)
}

// isMissingRight reports whether the authorizer rejected the request, rather than a quota or the deletion of the
// namespace.
func isMissingRight(err error, verb string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "+verb+" resource")
}

// A retry computes the delays between attempts. Each delay is twice the previous one, up to longest, less a random
// part.
type retry struct{ first, longest time.Duration }

func (r retry) delay(failures int) time.Duration {
	d := r.longest
	if failures < 32 && r.first<<failures < r.longest {
		d = r.first << failures
	}
	return d/2 + rand.N(d/2+1)
}
