// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/pkg/webhook/internal/callcontext"
	"github.com/admitkit/admitkit/pkg/webhook/internal/clientauth"
	"github.com/admitkit/admitkit/pkg/webhook/internal/registration"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
	"github.com/admitkit/admitkit/pkg/webhook/internal/server"
)

// A Server serves hooks over TLS at their paths, and /healthz and /readyz for probes. It is a
// Runnable for a controller-runtime manager, and runs on every replica. It is safe for concurrent
// use. Start may be called once.
type Server struct {
	opts    Options
	hooks   []*Hook
	started atomic.Bool

	gate        *server.Gate
	connections *server.Connections
	lateCalls   atomic.Int64 // answered after the context of Start was done

	readiness readiness

	listening     chan struct{} // closed once the following fields are set
	addr, opsAddr net.Addr
	startErr      error
}

// NewServer returns a server for the hooks. It does not listen yet, and it checks nothing: [Server.Start] reports the
// errors of the hooks and options.
func NewServer(o Options, hooks ...*Hook) *Server {
	o = o.completed(hooks, debug.SetMemoryLimit(-1))
	gate := server.NewGate(o.MaxInFlight, o.MaxInFlightBytes)
	return &Server{
		opts: o, hooks: hooks, listening: make(chan struct{}),
		gate: gate, connections: server.NewConnections(o.MaxConnections, o.MaxConnectionAge, gate.EvictSlowBody),
	}
}

// NeedLeaderElection returns false, so that a manager starts the server on every replica.
func (s *Server) NeedLeaderElection() bool { return false }

// Addr waits until the server listens and returns its address. If the server cannot listen, Addr
// returns the error of Start. If ctx ends first, it returns the error of ctx.
func (s *Server) Addr(ctx context.Context) (net.Addr, error) {
	select {
	case <-s.listening:
		return s.addr, s.startErr
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// OpsAddr is [Server.Addr] for [Options.OpsAddr].
func (s *Server) OpsAddr(ctx context.Context) (net.Addr, error) {
	if !s.opts.hasOps() {
		return nil, errors.New("the webhook server has no address for metrics and probes: set Options.OpsAddr")
	}
	if _, err := s.Addr(ctx); err != nil {
		return nil, err
	}
	return s.opsAddr, nil
}

// A Load is the current use of a server and its limits: see [Options]. Without a limit, the field is
// the largest number of its type. Package metrics exports it.
type Load struct {
	// Calls is the number of calls in flight. If a handler runs on after its deadline, its call counts until the
	// handler returns.
	Calls, MaxCalls int
	// Waiting is the number of calls in flight without an answer.
	Waiting int
	// Bytes is the memory for the bodies of these calls.
	Bytes, MaxBytes int64
	// Connections is the number of open connections.
	Connections, MaxConnections int
}

// Load returns the current load. It is cheap and may be called at any time.
func (s *Server) Load() Load {
	o := &s.opts
	l := Load{MaxCalls: o.MaxInFlight, MaxBytes: o.MaxInFlightBytes, MaxConnections: o.MaxConnections, Connections: s.connections.Count()}
	l.Calls, l.Bytes, l.Waiting = s.gate.Calls()
	return l
}

// Start serves until ctx is done and then stops as [Options.ShutdownDelay] and [Options.DrainTimeout] say. It returns
// nil unless calls were cut off or the listener failed. It does not cancel the contexts of calls in flight. It returns
// every error at once if a registration is invalid, two hooks share a path, or the server cannot listen.
func (s *Server) Start(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("the webhook server was already started")
	}
	logger := s.opts.Logger
	if logger.GetSink() == nil {
		logger = callcontext.LoggerIn(ctx)
	}
	auth, authErr := clientauth.New((*clientauth.Config)(s.opts.ClientAuth), logger)
	hooks, ops, listenErr := s.listeners(ctx)
	defer closeAll(hooks, ops) // they are already closed if the server ran
	if err := errors.Join(checkHooks(s.hooks), s.opts.check(s.hooks), authErr, listenErr); err != nil {
		s.startErr = fmt.Errorf("cannot start the webhook server: %w", err)
		close(s.listening)
		return s.startErr
	}
	defer auth.Start(ctx)()
	defer s.serveOps(ops, logger)()
	return s.run(ctx, hooks, &host{gate: s.gate, auth: auth}, logger)
}

// run serves the hooks, and stops when ctx is done or the listener fails.
func (s *Server) run(ctx context.Context, listener net.Listener, h *host, logger logr.Logger) error {
	delay := s.opts.ShutdownDelay
	if ctx.Err() != nil { // before the server accepts connections, so that no client can have found it
		delay = 0
	}
	httpServer := s.httpServer(ctx, h, logger)
	listener = s.connections.Listen(listener)
	s.addr = listener.Addr()
	s.gate.Serve()
	close(s.listening)
	logger.Info("serving webhooks", "addr", s.addr.String(), "hooks", len(s.hooks))
	logger.Info("the limits of the webhook server", s.opts.limitValues()...)

	var serveErr error
	served := make(chan struct{})
	go func() {
		defer close(served)
		serveErr = httpServer.ServeTLS(listener, "", "")
	}()
	drain := server.Drain{Server: httpServer, Listener: listener, Served: served, Gate: s.gate, Connections: s.connections, Timeout: s.opts.DrainTimeout}
	select {
	case <-served:
		return errors.Join(fmt.Errorf("the webhook server stopped: %w", serveErr), s.drain(ctx, &drain, time.Now(), logger))
	case <-ctx.Done():
	}
	start := time.Now()
	s.gate.AnnounceStop()
	logger.Info("the webhook server is about to stop", "delay", delay.String(), "callsInFlight", s.gate.Waiting())
	select {
	case <-served:
		logger.Error(serveErr, "the webhook server lost its listener while it was about to stop")
	case <-time.After(delay):
	}
	return s.drain(ctx, &drain, start, logger)
}

// drain drains the server, which began to stop at start.
func (s *Server) drain(ctx context.Context, d *server.Drain, start time.Time, logger logr.Logger) error {
	cutOff, err := d.Run(ctx)
	running, _, _ := s.gate.Calls()
	logger.Info("the webhook server stopped", "after", time.Since(start).String(), "callsAnsweredWhileStopping", s.lateCalls.Load(), "callsAborted", cutOff,
		"handlersStillRunning", running, "closeNotices", s.connections.Notices())
	return err
}

func (s *Server) httpServer(ctx context.Context, h *host, logger logr.Logger) *http.Server {
	base := logr.NewContext(context.WithoutCancel(ctx), logger)
	return server.New(server.Config{
		Handler:     s.handler(h),
		TLSConfig:   h.auth.TLSConfig(s.tlsConfig()),
		Connections: s.connections,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: h.auth.ConnContext,
		ErrorLog:    server.NewConnectionLog(logger, handshakeObserver(logger, s.opts.Observers)),
	})
}

// handshakeObserver returns a function that reports failed handshakes to the observers.
func handshakeObserver(logger logr.Logger, observers []Observer) func(class string) {
	return func(class string) {
		for _, o := range observers {
			if o, ok := o.(ConnectionObserver); ok {
				func() {
					defer recoverObserver(logr.NewContext(context.Background(), logger))
					o.HandshakeFailed(class)
				}()
			}
		}
	}
}

func (s *Server) tlsConfig() *tls.Config {
	c := s.opts.TLSConfig.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	if get := c.GetCertificate; get != nil {
		c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, err := get(hello)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", server.NoCertificate, err)
			}
			return cert, nil
		}
	}
	return c
}

// handler returns an http.Handler that routes each call by its cleaned path, without a redirect. http.ServeMux would
// redirect a path that is not clean, and a redirected call fails.
func (s *Server) handler(host *host) http.Handler {
	hooks := make(map[string]*Hook, len(s.hooks))
	for _, h := range s.hooks {
		if h.maxBytes == 0 {
			h = h.WithMaxBodyBytes(s.opts.MaxBodyBytes)
		}
		hooks[h.Path()] = h.hostedBy(host, s.opts.Observers)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := server.ConnectionOf(r.Context())
		c.AbortIfClosing(r)
		if hook := hooks[registration.CleanPath(r.URL.Path)]; hook != nil {
			hook.ServeHTTP(w, r)
			if s.gate.Stopping() {
				s.lateCalls.Add(1)
			}
			return
		}
		if s.gate.ClosesAfter(c, time.Now()) {
			reply.CloseConnection(w)
		}
		if s.answerProbe(w, r, true) {
			return
		}
		if refusal := host.authenticate(r); refusal != nil {
			host.auth.Refuse(w, r, refusal)
			return
		}
		status := reply.StatusOf(reply.New(http.StatusNotFound, fmt.Sprintf("no hook is served at %s", reply.Clip(r.URL.Path))))
		host.unknownPath.Error(callcontext.LoggerIn(r.Context()), errors.New(status.Message), "cannot decide", "code", status.Code)
		reply.WriteUnreadStatus(w, r, status)
	})
}

// hostedBy returns a copy of the hook for a server, with the server's host and observers. If the hook has an observer
// for which hidesFromServer is true, it gets no observers of the server.
func (h *Hook) hostedBy(host *host, observers []Observer) *Hook {
	c := *h
	c.host = host
	if !slices.ContainsFunc(h.observers, hidesFromServer) {
		c.observers = slices.Concat(observers, h.observers)
	}
	return &c
}

// listeners returns the listener of the hooks and the one of Options.OpsAddr, which may be nil.
func (s *Server) listeners(ctx context.Context) (hooks, ops net.Listener, err error) {
	hooks, ops = s.opts.Listener, s.opts.OpsListener
	var hooksErr, opsErr error
	if hooks == nil {
		if hooks, hooksErr = listenOn(ctx, s.opts.Addr); hooksErr != nil {
			hooksErr = fmt.Errorf("Options.Addr: %w", hooksErr)
		}
	}
	if ops == nil && s.opts.OpsAddr != "" {
		if ops, opsErr = listenOn(ctx, s.opts.OpsAddr); opsErr != nil {
			opsErr = fmt.Errorf("Options.OpsAddr: %w", opsErr)
		}
	}
	return hooks, ops, errors.Join(hooksErr, opsErr)
}

// listenOn listens on a TCP address. After an error it returns a nil interface, not an interface
// that holds a nil pointer.
func listenOn(ctx context.Context, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func closeAll(listeners ...net.Listener) {
	for _, l := range listeners {
		if l != nil {
			_ = l.Close()
		}
	}
}
