// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/go-logr/logr"
)

// The paths that the server answers itself.
const livePath, readyPath, metricsPath = "/healthz", "/readyz", "/metrics"

// Ready returns why the server is not ready, or nil: it listens, is not about to stop, and
// [Options.Ready] has nothing to say. It fits the AddReadyzCheck of a controller-runtime
// manager.
func (s *Server) Ready(r *http.Request) error {
	switch g := s.gate.Load(); {
	case g == nil:
		return errors.New("the webhook server does not listen yet")
	case g.stage.Load() > serving:
		return errors.New("the server is stopping")
	case s.opts.Ready != nil:
		return s.opts.Ready(r.Context())
	}
	return nil
}

// probed answers a probe, if r is one.
func (s *Server) probed(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case livePath:
	case readyPath:
		if err := s.Ready(r); err != nil {
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
		case s.probed(w, r):
		case r.URL.Path == metricsPath && s.opts.Metrics != nil:
			s.opts.Metrics.ServeHTTP(w, r)
		default:
			writeStatus(w, failureStatus(newFailure(http.StatusNotFound, fmt.Sprintf("nothing is served at %s", clip(r.URL.Path)))))
		}
	})
}
