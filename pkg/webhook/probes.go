// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/textutil"
)

// The paths that the server answers itself.
const livePath, readyPath, metricsPath = "/healthz", "/readyz", "/metrics"

// Ready returns why the server is not ready, or nil: it listens, is not about to stop, and
// [Options.Ready] has nothing to say. It fits the AddReadyzCheck of a controller-runtime
// manager.
func (s *Server) Ready(r *http.Request) error {
	if err := s.serves(); err != nil || s.opts.Ready == nil {
		return err
	}
	return s.opts.Ready(r.Context())
}

// serves returns why the server by itself is not ready.
func (s *Server) serves() error {
	switch g := s.gate.Load(); {
	case g == nil:
		return errors.New("the webhook server does not listen yet")
	case g.stage.Load() > serving:
		return errors.New("the server is stopping")
	}
	return nil
}

var errNotReady = errors.New("the server is not ready; its log says why")

// readyFor is Ready as a probe is told it, and has the log know why not. Options.Ready may name
// files and Secrets, which is not for everybody who reaches the hooks' address.
func (s *Server) readyFor(r *http.Request, strangers bool) error {
	if err := s.serves(); err != nil || s.opts.Ready == nil {
		return err
	}
	err := s.opts.Ready(r.Context())
	if r.Context().Err() == nil { // else it may say no more than that
		s.readiness.note(contextLogger(r.Context()), err, time.Now())
	}
	if err != nil && strangers {
		return errNotReady
	}
	return err
}

// A readiness remembers what was logged of it.
type readiness struct {
	mu     sync.Mutex
	at     time.Time // zero as long as nothing was
	reason string    // empty: it was ready
}

// note logs what has changed. Another reason than before is logged once in a while, since some
// are another each time.
func (l *readiness) note(log logr.Logger, err error, now time.Time) {
	reason := ""
	if err != nil {
		reason = textutil.Clip(err.Error(), maxMessageBytes)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	turned := l.at.IsZero() || (reason == "") != (l.reason == "")
	switch {
	case !turned && reason == l.reason:
	case !turned && now.Sub(l.at) < sparingInterval:
		log.V(1).Info("the webhook server is not ready", "reason", reason)
	default:
		l.at, l.reason = now, reason
		if err == nil {
			log.Info("the webhook server is ready")
			return
		}
		log.Info("the webhook server is not ready", "reason", reason)
	}
}

// probed answers a probe, if r is one.
func (s *Server) probed(w http.ResponseWriter, r *http.Request, strangers bool) bool {
	switch r.URL.Path {
	case livePath:
	case readyPath:
		if err := s.readyFor(r, strangers); err != nil {
			statusToStranger(w, r, failureStatus(newFailure(http.StatusServiceUnavailable, err.Error())))
			return true
		}
	default:
		return false
	}
	writeToStranger(w, r, http.StatusOK, []byte("\"ok\"\n"))
	return true
}

// serveOps serves probes and metrics until the function it returns is called.
func (s *Server) serveOps(listener net.Listener, logger logr.Logger) (stop func()) {
	if listener == nil {
		return func() {}
	}
	s.opsAddr = listener.Addr()
	server := &http.Server{
		Handler: s.opsHandler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return logr.NewContext(context.Background(), logger) },
		ErrorLog:    newConnectionLog(logger, nil).logger(),
	}
	logger.Info("serving probes and metrics", "addr", s.opsAddr.String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "probes and metrics are not served any more", "addr", s.opsAddr.String())
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), lingering)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-ended
	}
}

func (s *Server) opsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.probed(w, r, false):
		case r.URL.Path == metricsPath && s.opts.Metrics != nil:
			s.opts.Metrics.ServeHTTP(w, r)
		default:
			writeStatus(w, failureStatus(newFailure(http.StatusNotFound, fmt.Sprintf("nothing is served at %s", clip(r.URL.Path)))))
		}
	})
}
