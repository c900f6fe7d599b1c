// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/record"
)

// The limits of the time that a shutdown takes.
const (
	drainTimeout = 35 * time.Second // calls take at most 30 s
	closeTimeout = 10 * time.Second // for the disk
)

// inFlags replaces the names of record.Options in an error by the flags of the command.
var inFlags = strings.NewReplacer("record: ", "", "Options.SecretPaths", "--secret-path", "Options.KeyFile", "--key-file")

// Run records calls until ctx is done.
func Run(ctx context.Context, s *screen.Screen, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	n := &notes{screen: s}
	o.Record.Logger = n.logger()
	recorder, err := record.New(o.Record)
	if err != nil {
		return problem.New("%s", inFlags.Replace(err.Error()))
	}
	err = o.serve(ctx, n, recorder)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if closeErr := recorder.Close(end); closeErr != nil && err == nil {
		err = problem.New("%s", inFlags.Replace(closeErr.Error()))
	}
	if err == nil {
		n.summary(o.Record.Dir, recorder.Stats())
	}
	return err
}

// serve runs the servers until ctx is done.
func (o *Options) serve(ctx context.Context, n *notes, recorder *record.Recorder) error {
	proxy, transport := o.newProxy(n.limited())
	defer transport.CloseIdleConnections()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return problem.New("--listen %s: %w", o.Listen, err)
	}
	server := &http.Server{
		Handler:           recorder.Handler(proxy),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute, // the API server closes idle connections after 90 s
		ErrorLog:          log.New(n, "", 0),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	scheme := "http"
	if o.TLSCert != "" {
		scheme = "https"
		source := certs.Files(o.TLSCert, o.TLSKey, certs.FilesOptions{Logger: n.logger()})
		server.TLSConfig = certs.TLSConfig(source)
		group.Go(func() error { return source.Start(ctx) })
	} else {
		n.note("--tls-cert is not set, so the proxy serves HTTP. The API server needs HTTPS: set --tls-cert and --tls-key, or use a proxy that terminates TLS")
	}
	group.Go(func() error { return o.run(ctx, server, listener, n) })
	if o.MetricsListen != "" {
		group.Go(func() error { return o.serveMetrics(ctx, recorder) })
	}
	n.note("recording the calls of %s in %s, listening at %s://%s", o.To, o.Record.Dir, scheme, listener.Addr())
	if err := o.reach(transport); err != nil {
		n.warn(err)
	}
	return group.Wait()
}

// run serves until ctx is done. It then serves for ShutdownDelay more, and waits for the calls in flight.
func (o *Options) run(ctx context.Context, server *http.Server, listener net.Listener, n *notes) error {
	served := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			served <- server.ServeTLS(listener, "", "")
		} else {
			served <- server.Serve(listener)
		}
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	if o.ShutdownDelay > 0 {
		n.note("stopping in %s", o.ShutdownDelay)
		server.SetKeepAlivesEnabled(false) // clients move to other replicas
		<-time.After(o.ShutdownDelay)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		return errors.Join(fmt.Errorf("calls are still in flight after %s: %w", drainTimeout, err), server.Close())
	}
	return nil
}

// serveMetrics serves the metrics of the recorder until ctx is done.
func (o *Options) serveMetrics(ctx context.Context, recorder *record.Recorder) error {
	registry := prometheus.NewRegistry()
	if err := metrics.Recorder(registry, "record", recorder.Stats); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.MetricsListen)
	if err != nil {
		return problem.New("--metrics-listen %s: %w", o.MetricsListen, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // it ends Serve
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// notes prints notes. It is safe for concurrent use.
type notes struct {
	mu     sync.Mutex
	screen *screen.Screen
	last   time.Time // when an error of a call was printed
}

func (n *notes) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.screen.Note(format, args...)
}

func (n *notes) warn(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.screen.Problem(err)
}

// logger returns a logger that prints notes.
func (n *notes) logger() logr.Logger {
	return funcr.New(func(_, args string) { n.note("%s", args) }, funcr.Options{})
}

// Write prints a message of net/http, such as a failed handshake.
func (n *notes) Write(line []byte) (int, error) {
	n.limited()(errors.New(strings.TrimSpace(string(line))))
	return len(line), nil
}

// limited returns a function that prints errors that any call can cause, at most once per second.
func (n *notes) limited() func(error) {
	return func(err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if now := time.Now(); now.Sub(n.last) >= time.Second {
			n.last = now
			n.screen.Note("%v", err)
		}
	}
}

// summary prints the numbers of recorded and dropped calls.
func (n *notes) summary(dir string, s record.Stats) {
	dropped := s.QueueFull + s.DiskFailed + s.TooLarge + s.Unreadable
	text := fmt.Sprintf("recorded %s in %s", textutil.Count(int(s.Recorded), "call"), dir)
	if s.NotSampled > 0 {
		text += fmt.Sprintf("; %d not sampled", s.NotSampled)
	}
	if dropped > 0 {
		text += fmt.Sprintf("; %d dropped (queue full %d, disk failed %d, too large %d, unreadable %d)",
			dropped, s.QueueFull, s.DiskFailed, s.TooLarge, s.Unreadable)
	}
	n.note("%s", text)
}
