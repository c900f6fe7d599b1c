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
	flags.StringVar(&f.cert, "tls-cert-file", "/tls/tls.crt", "`file` with the serving certificate, read again while it is served")
	flags.StringVar(&f.key, "tls-private-key-file", "/tls/tls.key", "`file` with the key of the certificate")
	flags.StringVar(&f.ca, "tls-ca-file", "", "`file` with the CAs that the API server trusts, such as ca.crt of cert-manager: what they do not trust is not served instead of what they do")
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
	flags.StringVar(&s.opsAddr, "ops-addr", ":8080", "`address` to serve /metrics, /healthz and /readyz on over plain HTTP, or nothing")
	flags.DurationVar(&s.shutdownDelay, "shutdown-delay", 10*time.Second, "how long calls go on as before after SIGTERM, while the cluster finds out that the replica is leaving")
	flags.StringVar(&s.maxInFlightBytes, "max-in-flight-bytes", "256Mi", "`size` of all requests in flight together: what exceeds it is sent again by the API server; see the memory limit in the manifests")
}

// clients holds the flags that say who may call. Everybody may by default.
type clients struct{ caFile, names, tokenFile string }

func (c *clients) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.caFile, "client-ca-file", "", "PEM `file` with the CAs whose client certificates may call the hooks, read again while it is in use")
	flags.StringVar(&c.names, "client-names", "", "comma-separated `names`, of which a client certificate must be for one")
	flags.StringVar(&c.tokenFile, "token-file", "", "`file` with bearer tokens that may call the hooks, one on each line, read again while it is in use")
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

// serve serves until ctx is done. When one part of the program fails, the others end too.
func (o *options) serve(ctx context.Context, listener net.Listener, logger logr.Logger, hooks []*webhook.Hook) error {
	registry := prometheus.NewRegistry()
	source, install, served := o.files.source(logger), func(context.Context) error { return nil }, hooks
	if o.managed.on {
		config, err := o.managed.config()
		if err != nil {
			return err
		}
		s, err := o.selfManaged(config, logger, hooks)
		if err != nil {
			return err
		}
		source, install, served = s.source, s.run, s.installer.Hooks()
		if err := metrics.Installation(registry, o.name, s.installer); err != nil {
			return err
		}
	}
	serving, err := o.serverOptions(registry, source, logger, hooks)
	if err != nil {
		return err
	}
	if serving.Listener = listener; listener == nil {
		if serving.Listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.serving.addr); err != nil {
			return fmt.Errorf("--addr: %w", err)
		}
	}
	server := webhook.NewServer(serving, served...)
	if err := metrics.Server(registry, "hooks", server.Load); err != nil {
		return errors.Join(err, serving.Listener.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	why := make(chan error, 1)
	failed := func(err error) error {
		if err != nil {
			select {
			case why <- err: // the server takes its time to stop
				logger.Error(err, "the program is about to end")
			default: // a consequence
			}
		}
		return err
	}
	group.Go(func() error { return failed(server.Start(ctx)) })
	group.Go(func() error { return failed(install(ctx)) })
	group.Go(func() error {
		err := failed(source.Start(ctx))
		if err != nil { // it never had a certificate: there are no calls to wait for
			err = errors.Join(err, serving.Listener.Close())
		}
		return err
	})
	if err := group.Wait(); err == nil {
		return nil
	}
	return <-why
}

func (o *options) serverOptions(registry *prometheus.Registry, source certs.Source, logger logr.Logger, hooks []*webhook.Hook) (webhook.Options, error) {
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
		Ready:            certs.Ready(source),
		Observers:        []webhook.Observer{observed},
		ClientAuth:       o.clients.auth(),
		MaxInFlightBytes: inFlight.Value(),
		ShutdownDelay:    cmp.Or(o.serving.shutdownDelay, -1), // zero would be the default
		OpsAddr:          o.serving.opsAddr,
		Logger:           logger,
	}
	if serving.OpsAddr != "" {
		serving.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	}
	return serving, nil
}
