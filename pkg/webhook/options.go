// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Options configure a [Server]. Only TLSConfig is required. In every limit and duration, zero means
// the default and negative means no limit; a negative ShutdownDelay means no delay.
type Options struct {
	// Addr is the address to listen on, ":9443" when empty. It is not used with Listener.
	Addr string
	// Listener, unless nil, is used instead of Addr. It must not speak TLS itself. The server
	// closes it.
	Listener net.Listener
	// TLSConfig holds the serving certificate, in Certificates or GetCertificate. The server uses
	// a copy with TLS 1.2 or later.
	TLSConfig *tls.Config
	// Ready returns an error if the program is not ready to serve. Every probe of /readyz calls it. The log
	// and the probes at OpsAddr get the reason. The hooks' address, which any client may reach, answers only
	// that the server is not ready. With certificates, use certs.Ready. The server itself checks that it
	// listens and is not about to stop.
	Ready func(context.Context) error

	// OpsAddr, or OpsListener, is the address at which the server serves /metrics, /healthz and /readyz over
	// plain HTTP. It serves them before it serves the hooks, and until the last call is answered. If both
	// fields are unset, the probes are served at the hooks' own address only, and /metrics is not served.
	OpsAddr     string
	OpsListener net.Listener
	// Metrics is served at /metrics, such as promhttp.Handler().
	Metrics http.Handler
	// Observers see the calls of all hooks. A [ConnectionObserver] also sees the TLS handshakes
	// that failed.
	Observers []Observer

	// MaxBodyBytes limits a request body, in bytes, for hooks without a limit of their own:
	// [DefaultMaxBodyBytes] by default. See [Hook.WithMaxBodyBytes].
	MaxBodyBytes int64
	// MaxInFlight limits the calls in flight, from the headers to the answer: 1000 by default. If a handler runs on
	// after its deadline, its call counts until the handler returns. A call over the limit is answered 429 with
	// Retry-After before its body is read, and the API server tries again after a second. If the body of another call
	// is slow, that call is answered 429 instead: a body is slow if it takes more than 2 s, plus 1 s for each 64 KiB
	// that has arrived.
	MaxInFlight int
	// MaxInFlightBytes limits the memory for the bodies of the calls in flight, in bytes. Calls
	// over the limit are answered as for MaxInFlight, and slow bodies are evicted if together
	// they hold enough. Memory counts once it is allocated, whatever length a client announces.
	// A decoded object may take a few times the size of its body. The default is therefore an
	// eighth of GOMEMLIMIT (or of debug.SetMemoryLimit before [NewServer]), at least the largest
	// body, and at most 256 MiB. Without a GOMEMLIMIT it is 256 MiB.
	MaxInFlightBytes int64
	// MaxConnections limits the open connections: twice MaxInFlight by default, and at least 100.
	// At the limit, a new connection makes the server close another one. It prefers, in this
	// order: a connection older than a second without any call, one that has been busy for a
	// second without a call, one with a slow body, and the one that has been idle longest. If
	// there is none, the new connection waits. A connection whose call was read is never closed,
	// so use more than MaxInFlight.
	MaxConnections int
	// MaxConnectionAge is the time after which an answer closes its connection, so that the API
	// server finds new replicas: 5 minutes by default, up to a tenth more or less. A nanosecond
	// makes each answer close its connection.
	MaxConnectionAge time.Duration
	// ClientAuth restricts who may call the hooks. With nil, any client may.
	ClientAuth *ClientAuth

	// ShutdownDelay is how long the server continues to serve calls after the context of Start is done, while
	// the cluster removes the replica from its endpoints: 10 s by default.
	ShutdownDelay time.Duration
	// DrainTimeout is how long Start then waits for calls in flight and sends close notices: 35 s
	// by default, which is longer than any timeoutSeconds. Start returns
	// earlier when all calls are answered and all clients notified. In the last 4 s, or in the
	// second half of DrainTimeout if that is shorter, the server accepts no new connections.
	DrainTimeout time.Duration

	// Logger is used by the server and by hooks without one of their own. The zero value means
	// the logger in the context of Start, or else slog's default, so that failures are never
	// lost. logr.Discard() is a zero value too: to silence the server, use a logger with a sink
	// that drops everything.
	Logger logr.Logger
}

// completed returns o with a default for each unset field, and the largest number of the type for each negative limit.
// memory is the memory limit of the process, in bytes.
func (o Options) completed(hooks []*Hook, memory int64) Options {
	o.Addr = cmp.Or(o.Addr, ":9443")
	o.MaxBodyBytes = limit(o.MaxBodyBytes, DefaultMaxBodyBytes, math.MaxInt64)
	o.MaxInFlight = limit(o.MaxInFlight, 1000, math.MaxInt)
	o.MaxInFlightBytes = limit(o.MaxInFlightBytes, o.bytesInFlight(hooks, memory), math.MaxInt64)
	o.MaxConnections = limit(o.MaxConnections, max(100, o.MaxInFlight+min(o.MaxInFlight, math.MaxInt-o.MaxInFlight)), math.MaxInt)
	o.MaxConnectionAge = limit(o.MaxConnectionAge, 5*time.Minute, math.MaxInt64)
	o.ShutdownDelay = max(cmp.Or(o.ShutdownDelay, 10*time.Second), 0)
	o.DrainTimeout = limit(o.DrainTimeout, 35*time.Second, math.MaxInt64)
	return o
}

// bytesInFlight returns the default of MaxInFlightBytes. A call that mutates a typed object needs slightly more memory
// than three times its body, and the garbage of earlier calls may take as much again.
func (o *Options) bytesInFlight(hooks []*Hook, memory int64) int64 {
	var largest int64
	for _, h := range hooks {
		if bytes := o.bodyLimit(h); bytes != math.MaxInt64 {
			largest = max(largest, bytes)
		}
	}
	return min(max(memory/8>>20<<20, largest), 256<<20) // whole MiB
}

// bodyLimit returns the largest body of a hook, in bytes. A nil hook has no limit of its own.
func (o *Options) bodyLimit(h *Hook) int64 {
	if h != nil && h.maxBytes != 0 {
		return h.bodyLimit()
	}
	return o.MaxBodyBytes
}

func (o *Options) check(hooks []*Hook) error {
	var errs []error
	if c := o.TLSConfig; c == nil || len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		errs = append(errs, errors.New("Options.TLSConfig has no certificate: set its Certificates or GetCertificate"))
	}
	if o.Metrics != nil && !o.hasOps() {
		errs = append(errs, errors.New("Options.Metrics is not served: set OpsAddr or OpsListener"))
	}
	for _, h := range hooks {
		if h == nil {
			continue // reported by checkHooks
		}
		if h.Path() == livePath || h.Path() == readyPath {
			errs = append(errs, fmt.Errorf("webhook %s: path %s is reserved for probes: choose another with WithPath", h.Name(), h.Path()))
		}
	}
	return errors.Join(append(errs, o.checkBodies(hooks)...)...)
}

// checkBodies returns one error for each body limit that is too high, however many hooks have it.
func (o *Options) checkBodies(hooks []*Hook) (errs []error) {
	var limits []int64
	whose := map[int64][]string{}
	for _, h := range hooks {
		if h == nil {
			continue
		}
		most := o.bodyLimit(h)
		if most != math.MaxInt64 && most > o.MaxInFlightBytes && whose[most] == nil {
			limits = append(limits, most)
		}
		whose[most] = append(whose[most], h.Name())
	}
	for _, most := range limits {
		errs = append(errs, fmt.Errorf("%s: the limit of a body is %d bytes, but the limit of all bodies in flight is %d: raise Options.MaxInFlightBytes or lower MaxBodyBytes",
			someOf(whose[most]), most, o.MaxInFlightBytes))
	}
	return errs
}

// someOf returns the names of the webhooks, or the first three and the number of others.
func someOf(names []string) string {
	const shown = 3
	switch more := len(names) - shown; {
	case len(names) == 1:
		return "webhook " + names[0]
	case more > 0:
		return fmt.Sprintf("webhooks %s and %d more", strings.Join(names[:shown], ", "), more)
	}
	return "webhooks " + strings.Join(names, ", ")
}

func (o *Options) hasOps() bool { return o.OpsAddr != "" || o.OpsListener != nil }

// limitValues returns the limits for the log, as text with units.
func (o *Options) limitValues() []any {
	return []any{
		"maxInFlight", countText(o.MaxInFlight),
		"maxInFlightBytes", bytesText(o.MaxInFlightBytes),
		"maxBodyBytes", bytesText(o.MaxBodyBytes),
		"maxConnections", countText(o.MaxConnections),
		"maxConnectionAge", durationText(o.MaxConnectionAge),
		"shutdownDelay", durationText(o.ShutdownDelay),
		"drainTimeout", durationText(o.DrainTimeout),
	}
}

const unlimited = "none"

func countText(n int) string {
	if n == math.MaxInt {
		return unlimited
	}
	return strconv.Itoa(n)
}

func bytesText(n int64) string {
	if n == math.MaxInt64 {
		return unlimited
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}

func durationText(d time.Duration) string {
	if d == math.MaxInt64 {
		return unlimited
	}
	return d.String()
}
