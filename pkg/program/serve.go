// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// files holds the flags of a program with a certificate in files.
type files struct {
	cert, key, ca string
	interval      time.Duration
}

func (f *files) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&f.cert, "tls-cert-file", "/tls/tls.crt", "`file` with the serving certificate, reloaded when it changes")
	flags.StringVar(&f.key, "tls-private-key-file", "/tls/tls.key", "`file` with the private key of the certificate")
	flags.StringVar(&f.ca, "tls-ca-file", "", "`file` with the CAs that the API server trusts, such as ca.crt of cert-manager; a new certificate is served only if they trust it")
}

func (f *files) source(logger logr.Logger) certs.Source {
	return certs.Files(f.cert, f.key, certs.FilesOptions{CAFile: f.ca, Interval: f.interval, Logger: logger.WithName("certs")})
}

// serving holds the flags of the server.
type serving struct {
	addr, opsAddr    string
	shutdownDelay    time.Duration
	maxInFlightBytes string
}

func (s *serving) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&s.addr, "addr", ":9443", "`address` to serve the hooks on")
	flags.StringVar(&s.opsAddr, "ops-addr", ":8080", "`address` to serve /metrics, /healthz and /readyz on over plain HTTP; empty serves none of them")
	flags.DurationVar(&s.shutdownDelay, "shutdown-delay", 10*time.Second, "how long to keep serving normally after SIGTERM, until the Service no longer sends calls here")
	flags.StringVar(&s.maxInFlightBytes, "max-in-flight-bytes", "256Mi", "maximal `size` of all requests in flight; the API server repeats the calls that are rejected")
}

// clients holds the flags for the authentication of clients. By default every client may call.
type clients struct{ caFile, names, tokenFile string }

func (c *clients) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.caFile, "client-ca-file", "", "PEM `file` with the CAs whose client certificates may call the hooks, reloaded when it changes")
	flags.StringVar(&c.names, "client-names", "", "comma-separated `names`: a client certificate must be for one of them")
	flags.StringVar(&c.tokenFile, "token-file", "", "`file` with bearer tokens that may call the hooks, one per line, reloaded when it changes")
}

func (c *clients) auth() *webhook.ClientAuth {
	if *c == (clients{}) {
		return nil
	}
	auth := &webhook.ClientAuth{CAFile: c.caFile, TokenFile: c.tokenFile}
	if c.names != "" {
		auth.Names = strings.Split(c.names, ",")
	}
	return auth
}

// serve serves until ctx ends. If one part of the program fails, serve stops the others and returns the first error.
func (p Program) serve(ctx context.Context, o *options, deps *Deps, hooks []*webhook.Hook) error {
	registry, logger := deps.registry, deps.Logger
	source, install, served := o.files.source(logger), func(context.Context) error { return nil }, hooks
	if o.managed.on {
		s, err := o.selfManaged(deps.Config, deps, hooks)
		if err != nil {
			return err
		}
		source, served = s.source, s.installer.Hooks()
		install = func(ctx context.Context) error { return s.run(ctx, deps) }
		if err := metrics.Installation(registry, o.name, s.installer); err != nil {
			return err
		}
	}
	serving, err := o.serverOptions(registry, source, deps, hooks)
	if err != nil {
		return err
	}
	if p.Options != nil {
		p.Options(&serving)
	}
	if serving.Listener = p.Listener; p.Listener == nil {
		if serving.Listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.serving.addr); err != nil {
			return fmt.Errorf("--addr: %w", err)
		}
	}
	server := webhook.NewServer(serving, served...)
	if err := metrics.Server(registry, "hooks", server.Load); err != nil {
		return errors.Join(err, serving.Listener.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	first := make(chan error, 1)
	failed := func(err error) error {
		if err != nil {
			select {
			case first <- err: // logged at once, because the server takes its time to stop
				logger.Error(err, "the program is stopping because a part of it failed")
			default: // a consequence of the first error
			}
		}
		return err
	}
	group.Go(func() error { return failed(deps.Start(ctx)) })
	group.Go(func() error { return failed(server.Start(ctx)) })
	group.Go(func() error { return failed(install(ctx)) })
	group.Go(func() error {
		err := failed(source.Start(ctx))
		if err != nil { // there was never a certificate, so there are no calls to wait for
			err = errors.Join(err, serving.Listener.Close())
		}
		return err
	})
	if err := group.Wait(); err == nil {
		return nil
	}
	return <-first
}

func (o *options) serverOptions(registry *prometheus.Registry, source certs.Source, deps *Deps, hooks []*webhook.Hook) (webhook.Options, error) {
	inFlight, err := resource.ParseQuantity(o.serving.maxInFlightBytes)
	if err != nil {
		return webhook.Options{}, fmt.Errorf("--max-in-flight-bytes: %w", err)
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	observed, err := metrics.New(registry, metrics.Options{Hooks: hooks})
	if err == nil {
		err = metrics.Source(registry, "serving", source)
	}
	if err != nil {
		return webhook.Options{}, err
	}
	serving := webhook.Options{
		TLSConfig:        certs.TLSConfig(source),
		Ready:            o.ready(source, deps),
		Observers:        []webhook.Observer{observed},
		ClientAuth:       o.clients.auth(),
		MaxInFlightBytes: inFlight.Value(),
		ShutdownDelay:    cmp.Or(o.serving.shutdownDelay, -1), // zero would be the default
		OpsAddr:          o.serving.opsAddr,
		Logger:           deps.Logger,
	}
	if serving.OpsAddr != "" {
		serving.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	}
	return serving, nil
}

// ready returns the condition of readiness: a certificate that the API server trusts, and synced caches.
func (o *options) ready(source certs.Source, deps *Deps) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := certs.Ready(source)(ctx); err != nil {
			return err
		}
		return deps.Ready(ctx)
	}
}
