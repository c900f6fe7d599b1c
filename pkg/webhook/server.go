// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// A Server serves hooks over TLS at their paths, and /healthz and /readyz for probes. It is a
// Runnable of a controller-runtime manager that runs on every replica. Safe for concurrent
// use; Start may be called once.
type Server struct {
	opts  Options
	hooks []*Hook
	start atomic.Bool

	gate atomic.Pointer[gate] // nil until it listens
	late atomic.Int64         // calls answered after the signal to stop

	readiness readiness

	listen        chan struct{} // closed once those that follow are set
	addr, opsAddr net.Addr
	failed        error
}

// NewServer returns a server for the hooks.
func NewServer(o Options, hooks ...*Hook) *Server {
	return &Server{opts: o.completed(hooks, debug.SetMemoryLimit(-1)), hooks: hooks, listen: make(chan struct{})}
}

// NeedLeaderElection tells a manager that every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Addr waits until the server listens and returns the address, for a port chosen by the
// system. It returns what Start returned when that could not listen, and the context's error
// when that is done first.
func (s *Server) Addr(ctx context.Context) (net.Addr, error) {
	select {
	case <-s.listen:
		return s.addr, s.failed
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

// Start serves until ctx is done, then stops in the order that [Options.ShutdownDelay] and
// [Options.DrainTimeout] tell, and returns nil unless calls were cut off. The contexts of calls
// in flight are not cancelled. It returns at once, with every error, when a registration is
// invalid, two hooks share a path or it cannot listen.
func (s *Server) Start(ctx context.Context) error {
	if s.start.Swap(true) {
		return errors.New("the webhook server was started before")
	}
	logger := s.opts.Logger
	if logger.GetSink() == nil {
		logger = contextLogger(ctx)
	}
	auth, authErr := newAuthenticator(s.opts.ClientAuth, logger)
	hooks, ops, listenErr := s.listeners(ctx)
	defer closeAll(hooks, ops) // a second time, if the server ran
	if err := errors.Join(checkHooks(s.hooks), s.opts.check(s.hooks), authErr, listenErr); err != nil {
		s.failed = fmt.Errorf("cannot start the webhook server: %w", err)
		close(s.listen)
		return s.failed
	}
	defer auth.start(ctx)()
	defer s.serveOps(ops, logger)()
	return s.run(ctx, hooks, newGate(&s.opts, auth), logger)
}

// run serves the hooks, and stops when ctx is done or the listener fails.
func (s *Server) run(ctx context.Context, listener net.Listener, g *gate, logger logr.Logger) error {
	connections := newConnections(&s.opts, g)
	server := s.httpServer(ctx, g, connections, logger)
	listener = connections.listen(listener)
	s.addr = listener.Addr()
	g.connections = connections
	s.gate.Store(g)
	g.stage.Store(serving)
	close(s.listen)
	logger.Info("serving webhooks", "addr", s.addr.String(), "hooks", len(s.hooks))
	logger.Info("the limits of the webhook server", s.opts.limitValues()...)

	var serveErr error
	served := make(chan struct{})
	go func() {
		defer close(served)
		serveErr = server.ServeTLS(listener, "", "")
	}()
	start := time.Now()
	d := drain{server, listener, served, g, connections, s.opts.DrainTimeout}
	stop := func() error {
		left, err := d.run(ctx)
		logger.Info("the webhook server stopped", "after", time.Since(start).String(), "callsAnsweredMeanwhile", s.late.Load(), "callsCutOff", left,
			"handlersLeftBehind", g.calls.Load(), "connectionsTold", connections.told.Load())
		return err
	}
	delay := s.opts.ShutdownDelay
	if ctx.Err() != nil {
		delay = 0 // nobody can have found it
	}
	select {
	case <-served:
		return errors.Join(fmt.Errorf("the webhook server stopped: %w", serveErr), stop())
	case <-ctx.Done():
	}
	start = time.Now()
	g.stage.Store(leaving)
	logger.Info("the webhook server is about to stop", "delay", delay.String(), "callsInFlight", g.waiting.Load())
	pause := time.NewTimer(delay)
	defer pause.Stop()
	select {
	case <-served:
		logger.Error(serveErr, "the webhook server lost its listener while it was about to stop")
	case <-pause.C:
	}
	return stop()
}

// The limits for slow clients that are not limits for calls: each of these has its own deadline
// for reading.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute     // of what is no call, and of all that comes after one
	writeTimeout  = time.Minute     // from the headers on: well over the 30 s of a call
	idleTimeout   = 2 * time.Minute // longer than the 90 s after which the API server closes
)

func (s *Server) httpServer(ctx context.Context, g *gate, connections *connections, logger logr.Logger) *http.Server {
	handler, errorLog := s.handler(g), newConnectionLog(logger, s.opts.Observers).logger()
	server := func() *http.Server { return s.plainServer(ctx, g, connections, logger, handler, errorLog) }
	main := server()
	main.TLSConfig = g.auth.tlsConfig(s.tlsConfig())
	main.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) { serveHTTP2(conn, server()) },
	}
	return main
}

func (s *Server) plainServer(ctx context.Context, g *gate, connections *connections, logger logr.Logger, handler http.Handler, errorLog *log.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250,
			SendPingTimeout:      30 * time.Second,
			PingTimeout:          15 * time.Second,
			WriteByteTimeout:     30 * time.Second,
		},
		BaseContext: func(net.Listener) context.Context {
			return logr.NewContext(context.WithoutCancel(ctx), logger)
		},
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return g.auth.connContext(withConnection(ctx, conn), conn)
		},
		ConnState: connections.onState,
		ErrorLog:  errorLog,
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
				return nil, fmt.Errorf("%s: %w", noCertificate, err)
			}
			return cert, nil
		}
	}
	return c
}

// listeners returns that of the hooks, and that of Options.OpsAddr or nil.
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

// listenOn returns nil and not a nil listener of some type.
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

// handler routes by exact path. http.ServeMux would redirect paths that are not clean, and a
// redirected call is a failed call.
func (s *Server) handler(g *gate) http.Handler {
	hooks := make(map[string]*Hook, len(s.hooks))
	for _, h := range s.hooks {
		if h.maxBytes == 0 {
			h = h.WithMaxBodyBytes(s.opts.MaxBodyBytes)
		}
		hooks[h.Path()] = h.servedThrough(g, s.opts.Observers)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connectionOf(r.Context())
		if c != nil && c.dismissed.Load() && c.http2 == nil {
			c.abort(r)
		}
		if hook := hooks[cleanPath(r.URL.Path)]; hook != nil {
			hook.ServeHTTP(w, r)
			if g.stage.Load() >= leaving {
				s.late.Add(1)
			}
			return
		}
		if g.isLast(c, time.Now()) {
			w.Header()["Connection"] = closeConnection
		}
		if s.probed(w, r, true) {
			return
		}
		if refused := g.auth.admit(r); refused != nil {
			g.auth.refuse(w, r, refused)
			return
		}
		status := failureStatus(newFailure(http.StatusNotFound, fmt.Sprintf("no hook is served at %s", clip(r.URL.Path))))
		g.unknown.log(contextLogger(r.Context()), errors.New(status.Message), "cannot decide", "code", status.Code)
		statusToStranger(w, r, status)
	})
}

// servedThrough returns the hook as a server serves it.
func (h *Hook) servedThrough(g *gate, observers []Observer) *Hook {
	c := *h
	c.gate = g
	if !slices.ContainsFunc(h.observers, hidesFromServer) {
		c.observers = slices.Concat(observers, h.observers)
	}
	return &c
}
