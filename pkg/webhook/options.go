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
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// Options configure a [Server]. Only TLSConfig is required. A limit or a duration of zero has
// the default that it names; a negative one is as much as there is: no limit, or no waiting.
type Options struct {
	// Addr is where to listen, ":9443" when empty. Not used with Listener.
	Addr string
	// Listener is listened on instead of Addr, without TLS of its own. The server closes it.
	Listener net.Listener
	// TLSConfig holds the serving certificate, in Certificates or GetCertificate. A copy is
	// used, with TLS 1.2 as the least version unless it says more.
	TLSConfig *tls.Config
	// Ready says whether the server could serve, and if not, why: it is asked by each probe of
	// /readyz. The log is told why, and so is who asks at OpsAddr; the hooks' address, which
	// strangers may reach, tells only that. With certificates it is certs.Ready. The server adds
	// that it listens and is not about to stop.
	Ready func(context.Context) error

	// OpsAddr, or OpsListener, is where to serve /metrics, /healthz and /readyz over plain HTTP,
	// from before the hooks are served until the last of their calls is answered. Without
	// either there is only what the hooks' own address has, which is all but /metrics.
	OpsAddr     string
	OpsListener net.Listener
	// Metrics is served at /metrics, such as promhttp.Handler().
	Metrics http.Handler
	// Observers are told of the calls of all hooks; those that are a [ConnectionObserver], also
	// of TLS handshakes that failed.
	Observers []Observer

	// MaxBodyBytes bounds a request body, for the hooks that do not do so themselves:
	// [DefaultMaxBodyBytes] when zero or less. See [Hook.WithMaxBodyBytes].
	MaxBodyBytes int64
	// MaxInFlight bounds the calls in flight, from the headers to the answer; a handler that
	// goes on after its deadline counts until it returns. 1000 when zero. A call too many waits
	// for nothing: it is answered 429 with Retry-After, before its body is read, and the API
	// server tries again after a second. If there is a call whose body takes more than 2 s, and
	// another for each 64 KiB that came, that one is turned away instead.
	MaxInFlight int
	// MaxInFlightBytes bounds the bodies of the calls in flight, in bytes, and is answered for
	// as MaxInFlight is; slow bodies go if together they hold enough. Bytes count once there is memory for them: what a client announces does
	// not. What is decoded of a body may be a few times its size, so when zero it is an eighth of
	// GOMEMLIMIT (or what debug.SetMemoryLimit set before [NewServer]), but room for one body at
	// least, and 256 MiB at most or without a GOMEMLIMIT.
	MaxInFlightBytes int64
	// MaxConnections bounds the open connections. For one more another goes: first one that is older
	// than a second and has never had a call, then one that has been busy for a second without a
	// call, then one with a body that is slow, then the one that has been idle for longest. If all have calls, or were just made, the new one
	// waits. Twice MaxInFlight when zero, and at least 100. A connection with a call that was
	// read is never closed, so use more than MaxInFlight.
	MaxConnections int
	// MaxConnectionAge is how long a connection is used before an answer on it says that it
	// is the last, a tenth more or less, so that the API server comes to know of new replicas.
	// 5 minutes when zero. A nanosecond makes each answer the last.
	MaxConnectionAge time.Duration
	// ClientAuth says who may call the hooks, everybody when nil.
	ClientAuth *ClientAuth

	// ShutdownDelay is how long calls go on as before once the context of Start is done, while
	// the cluster finds out that the replica is leaving. 10 s when zero, also for a server that
	// was never ready, since it does not know who asked.
	ShutdownDelay time.Duration
	// DrainTimeout is how long Start takes after that at most, for calls in flight and to tell all
	// clients that the server goes: 35 s when zero or less, longer than the longest
	// timeoutSeconds of a webhook. It ends earlier when all are answered and told. The last 4 s,
	// or the second half if that is less, nobody can connect any more.
	DrainTimeout time.Duration

	// Logger is used by the server and by hooks without one of their own. The zero value takes
	// the logger in the context of Start, or else slog's default, since a failure that nobody
	// hears of is the worst kind. logr.Discard() is a zero value too: to silence the server
	// give it a logger with a sink that drops everything.
	Logger logr.Logger
}

// completed sets what is not set. memory is what the process is to keep to.
func (o Options) completed(hooks []*Hook, memory int64) Options {
	o.Addr = cmp.Or(o.Addr, ":9443")
	o.MaxBodyBytes = max(o.MaxBodyBytes, 0)
	o.MaxInFlight = limit(o.MaxInFlight, 1000, math.MaxInt)
	o.MaxInFlightBytes = limit(o.MaxInFlightBytes, o.bytesInFlight(hooks, memory), math.MaxInt64)
	o.MaxConnections = limit(o.MaxConnections, max(100, o.MaxInFlight+min(o.MaxInFlight, math.MaxInt-o.MaxInFlight)), math.MaxInt)
	o.MaxConnectionAge = limit(o.MaxConnectionAge, 5*time.Minute, math.MaxInt64)
	o.ShutdownDelay = max(cmp.Or(o.ShutdownDelay, 10*time.Second), 0)
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = 35 * time.Second
	}
	return o
}

// bytesInFlight is the default of MaxInFlightBytes. A typed object of a call that changes it takes
// a bit more than three times its body, and what was let go and is not collected yet as much again.
func (o *Options) bytesInFlight(hooks []*Hook, memory int64) int64 {
	var one int64
	for _, h := range hooks {
		one = max(one, o.bodyLimit(h))
	}
	return min(max(memory/8>>20<<20, one), 256<<20) // whole MiB
}

// bodyLimit is what a body of the hook may have, or of one that has no limit of its own.
func (o *Options) bodyLimit(h *Hook) int64 {
	if h != nil && h.maxBytes != 0 {
		return h.maxBytes
	}
	return cmp.Or(o.MaxBodyBytes, DefaultMaxBodyBytes)
}

func limit[T int | int64 | time.Duration](value, byDefault, most T) T {
	if value < 0 {
		return most
	}
	return cmp.Or(value, byDefault)
}

func (o *Options) check(hooks []*Hook) error {
	var errs []error
	if c := o.TLSConfig; c == nil || len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		errs = append(errs, errors.New("Options.TLSConfig has no certificate: set its Certificates or GetCertificate"))
	}
	if o.Metrics != nil && !o.hasOps() {
		errs = append(errs, errors.New("Options.Metrics is served nowhere: set OpsAddr or OpsListener"))
	}
	for _, h := range hooks {
		if h == nil {
			continue // reported by checkHooks
		}
		if h.Path() == livePath || h.Path() == readyPath {
			errs = append(errs, fmt.Errorf("webhook %s: the server answers probes at %s itself", h.Name(), h.Path()))
		}
	}
	return errors.Join(append(errs, o.checkBodies(hooks)...)...)
}

// checkBodies says once for each limit that it is too high, however many hooks have it.
func (o *Options) checkBodies(hooks []*Hook) (errs []error) {
	var limits []int64
	whose := map[int64][]string{}
	for _, h := range hooks {
		if h == nil {
			continue
		}
		most := o.bodyLimit(h)
		if most > o.MaxInFlightBytes && whose[most] == nil {
			limits = append(limits, most)
		}
		whose[most] = append(whose[most], h.Name())
	}
	for _, most := range limits {
		errs = append(errs, fmt.Errorf("%s: a body may have %d bytes, and all in flight together no more than %d: raise Options.MaxInFlightBytes or lower MaxBodyBytes",
			someOf(whose[most]), most, o.MaxInFlightBytes))
	}
	return errs
}

// someOf names webhooks, if they are many only the first.
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
