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
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// Options configure a [Server]. Only TLSConfig is required.
type Options struct {
	// Addr is where to listen, ":9443" when empty. Not used with Listener.
	Addr string
	// Listener is listened on instead of Addr, without TLS of its own. The server closes it.
	Listener net.Listener
	// TLSConfig holds the serving certificate, in Certificates or GetCertificate. A copy is
	// used, with TLS 1.2 as the least version unless it says more.
	TLSConfig *tls.Config
	// MaxBodyBytes bounds a request body, unless zero, for the hooks that do not say so
	// themselves: see [Hook.WithMaxBodyBytes].
	MaxBodyBytes int64
	// ClientAuth says who may call the hooks, everybody when nil.
	ClientAuth *ClientAuth
	// Logger is used by the server and by hooks without one of their own. The zero value takes
	// the logger in the context of Start, or else slog's default, since a failure that nobody
	// hears of is the worst kind. logr.Discard() is a zero value too: to silence the server
	// give it a logger with a sink that drops everything.
	Logger logr.Logger
	// DrainTimeout is how long Start waits for calls in flight once its context is done: 35 s
	// when zero, longer than the longest timeoutSeconds of a webhook.
	DrainTimeout time.Duration
}

// A Server serves hooks over TLS at their paths, and /healthz and /readyz for probes. It is a
// Runnable of a controller-runtime manager that runs on every replica. Safe for concurrent
// use; Start may be called once.
type Server struct {
	opts   Options
	hooks  []*Hook
	start  atomic.Bool
	ready  atomic.Bool
	listen chan struct{} // closed once addr or failed is set
	addr   net.Addr
	failed error
}

// NewServer returns a server for the hooks.
func NewServer(o Options, hooks ...*Hook) *Server {
	return &Server{opts: o, hooks: hooks, listen: make(chan struct{})}
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

// Start serves until ctx is done, then stops taking calls, waits for those in flight, whose
// contexts it does not cancel, and returns nil. It returns at once, with every error, when a
// registration is invalid, two hooks share a path or it cannot listen.
func (s *Server) Start(ctx context.Context) error {
	if s.start.Swap(true) {
		return errors.New("the webhook server was started before")
	}
	listener, listenErr := s.listener(ctx)
	if listenErr == nil {
		defer func() { _ = listener.Close() }() // a second time, if the server ran
	}
	logger := s.opts.Logger
	if logger.GetSink() == nil {
		logger = contextLogger(ctx)
	}
	auth, authErr := newAuthenticator(s.opts.ClientAuth, logger)
	if err := errors.Join(checkHooks(s.hooks), s.checkProbes(), s.checkOptions(), authErr, listenErr); err != nil {
		s.failed = fmt.Errorf("cannot start the webhook server: %w", err)
		close(s.listen)
		return s.failed
	}
	defer auth.start(ctx)()
	server := &http.Server{
		Handler:           s.handler(auth),
		TLSConfig:         auth.tlsConfig(s.tlsConfig()),
		ConnContext:       auth.connContext,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,     // well over 30 s: when it ends, so does the call's context
		IdleTimeout:       2 * time.Minute, // longer than the 90 s after which the API server closes
		BaseContext: func(net.Listener) context.Context {
			return logr.NewContext(context.WithoutCancel(ctx), logger)
		},
		ErrorLog: log.New(lineLogger{logger}, "", 0),
	}
	s.addr = listener.Addr()
	close(s.listen)
	s.ready.Store(true)
	logger.Info("serving webhooks", "addr", s.addr.String(), "hooks", len(s.hooks))

	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-served:
		s.ready.Store(false)
		return fmt.Errorf("the webhook server stopped: %w", err)
	case <-ctx.Done():
	}
	s.ready.Store(false)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.DrainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("calls in flight were cut off after %s: %w", s.opts.DrainTimeout, errors.Join(err, server.Close()))
	}
	return nil
}

// The paths that the server answers itself.
const livePath, readyPath = "/healthz", "/readyz"

func (s *Server) checkProbes() error {
	var errs []error
	for _, h := range s.hooks {
		if h != nil && (h.Path() == livePath || h.Path() == readyPath) {
			errs = append(errs, fmt.Errorf("webhook %s: the server answers probes at %s itself", h.Name(), h.Path()))
		}
	}
	return errors.Join(errs...)
}

func (s *Server) checkOptions() error {
	if s.opts.DrainTimeout <= 0 {
		s.opts.DrainTimeout = 35 * time.Second
	}
	if c := s.opts.TLSConfig; c == nil || len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		return errors.New("Options.TLSConfig has no certificate: set its Certificates or GetCertificate")
	}
	return nil
}

func (s *Server) tlsConfig() *tls.Config {
	c := s.opts.TLSConfig.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	return c
}

func (s *Server) listener(ctx context.Context) (net.Listener, error) {
	if s.opts.Listener != nil {
		return s.opts.Listener, nil
	}
	addr := s.opts.Addr
	if addr == "" {
		addr = ":9443"
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
}

// handler routes by exact path. http.ServeMux would redirect paths that are not clean, and a
// redirected call is a failed call.
func (s *Server) handler(auth *authenticator) http.Handler {
	hooks := make(map[string]*Hook, len(s.hooks))
	for _, h := range s.hooks {
		if s.opts.MaxBodyBytes != 0 && h.maxBytes == 0 {
			h = h.WithMaxBodyBytes(s.opts.MaxBodyBytes)
		}
		hooks[h.Path()] = h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hook := hooks[cleanPath(r.URL.Path)]
		switch {
		case r.URL.Path == livePath, r.URL.Path == readyPath && s.ready.Load():
			write(w, http.StatusOK, []byte("\"ok\"\n"))
			return
		case r.URL.Path == readyPath:
			writeStatus(w, failureStatus(newFailure(http.StatusServiceUnavailable, "the server is stopping")))
			return
		}
		switch refused := auth.admit(r); {
		case refused != nil:
			auth.refuse(w, r, refused)
		case hook != nil:
			hook.ServeHTTP(w, r)
		default:
			status := failureStatus(newFailure(http.StatusNotFound, fmt.Sprintf("no hook is served at %s", r.URL.Path)))
			contextLogger(r.Context()).Error(errors.New(status.Message), "cannot decide", "code", status.Code)
			writeStatus(w, status)
		}
	})
}

// lineLogger passes on what net/http reports of connections, which is noise at a normal level.
type lineLogger struct{ logr.Logger }

func (l lineLogger) Write(line []byte) (int, error) {
	l.V(1).Info("http server", "message", string(line))
	return len(line), nil
}
