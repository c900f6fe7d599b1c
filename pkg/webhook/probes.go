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
	"github.com/admitkit/admitkit/pkg/webhook/internal/callcontext"
	"github.com/admitkit/admitkit/pkg/webhook/internal/ratelog"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
	"github.com/admitkit/admitkit/pkg/webhook/internal/server"
)

// The paths that the server answers itself.
const livePath, readyPath, metricsPath = "/healthz", "/readyz", "/metrics"

// Ready returns an error unless the server is ready. It is ready if it listens, is not about to stop, and
// [Options.Ready] returns nil. Ready can be passed to AddReadyzCheck of a controller-runtime manager.
func (s *Server) Ready(r *http.Request) error {
	if err := s.serves(); err != nil || s.opts.Ready == nil {
		return err
	}
	return s.opts.Ready(r.Context())
}

// serves returns an error if the server does not serve. It does not call Options.Ready.
func (s *Server) serves() error {
	select {
	case <-s.listening:
	default:
		return errors.New("the webhook server is not listening yet")
	}
	if s.gate.Stopping() {
		return errors.New("the server is stopping")
	}
	return s.startErr
}

var errNotReady = errors.New("the server is not ready; its log has the reason")

// readyFor is Ready for a probe. It logs the reason if the server is not ready. A probe at the hooks' address,
// which any client may reach, does not get the reason: Options.Ready may name files and Secrets.
func (s *Server) readyFor(r *http.Request, public bool) error {
	if err := s.serves(); err != nil || s.opts.Ready == nil {
		return err
	}
	err := s.opts.Ready(r.Context())
	if r.Context().Err() == nil { // otherwise err may come from the context only
		s.readiness.log(callcontext.LoggerIn(r.Context()), err, time.Now())
	}
	if err != nil && public {
		return errNotReady
	}
	return err
}

// A readiness logs when the server becomes ready or stops being ready. It holds what was logged last.
type readiness struct {
	mu     sync.Mutex
	at     time.Time // zero before the first line
	reason string    // empty if the server was ready
}

// log logs a change of the readiness. A new reason is logged at most once per interval, since some
// reasons differ each time.
func (l *readiness) log(log logr.Logger, err error, now time.Time) {
	reason := ""
	if err != nil {
		reason = textutil.Clip(err.Error(), reply.MaxMessageBytes)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	turned := l.at.IsZero() || (reason == "") != (l.reason == "")
	switch {
	case !turned && reason == l.reason:
	case !turned && now.Sub(l.at) < ratelog.Interval:
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

// answerProbe answers a probe, and reports whether r is one.
func (s *Server) answerProbe(w http.ResponseWriter, r *http.Request, public bool) bool {
	switch r.URL.Path {
	case livePath:
	case readyPath:
		if err := s.readyFor(r, public); err != nil {
			reply.WriteUnreadStatus(w, r, reply.StatusOf(reply.New(http.StatusServiceUnavailable, err.Error())))
			return true
		}
	default:
		return false
	}
	reply.WriteUnread(w, r, http.StatusOK, []byte("\"ok\"\n"))
	return true
}

// opsShutdown is how long a stopping server waits for probe and metrics requests in flight.
const opsShutdown = 3 * time.Second

// serveOps serves probes and metrics until stop is called.
func (s *Server) serveOps(listener net.Listener, logger logr.Logger) (stop func()) {
	if listener == nil {
		return func() {}
	}
	s.opsAddr = listener.Addr()
	ops := &http.Server{
		Handler: s.opsHandler(), ReadHeaderTimeout: server.HeaderTimeout, ReadTimeout: server.HeaderTimeout, WriteTimeout: server.WriteTimeout, IdleTimeout: server.IdleTimeout,
		BaseContext: func(net.Listener) context.Context { return logr.NewContext(context.Background(), logger) },
		ErrorLog:    server.NewConnectionLog(logger, func(string) {}),
	}
	logger.Info("serving probes and metrics", "addr", s.opsAddr.String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := ops.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "probes and metrics are no longer served", "addr", s.opsAddr.String())
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), opsShutdown)
		defer cancel()
		if ops.Shutdown(ctx) != nil {
			_ = ops.Close()
		}
		<-ended
	}
}

func (s *Server) opsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.answerProbe(w, r, false):
		case r.URL.Path == metricsPath && s.opts.Metrics != nil:
			s.opts.Metrics.ServeHTTP(w, r)
		default:
			reply.WriteStatus(w, reply.StatusOf(reply.New(http.StatusNotFound, fmt.Sprintf("no handler is served at %s", reply.Clip(r.URL.Path)))))
		}
	})
}
