// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
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
	maxInFlightBytes resource.QuantityValue
}

func (s *serving) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&s.addr, "addr", ":9443", "`address` to serve the hooks on")
	flags.StringVar(&s.opsAddr, "ops-addr", ":8080", "`address` to serve /metrics, /healthz and /readyz on over plain HTTP; empty serves none of them")
	flags.DurationVar(&s.shutdownDelay, "shutdown-delay", defaultShutdownDelay(), "how long to keep serving normally after SIGTERM, until the Service no longer sends calls here: by default 10s in a Pod, and elsewhere not at all")
	s.maxInFlightBytes.Quantity = resource.MustParse("256Mi")
	flags.Var(&s.maxInFlightBytes, "max-in-flight-bytes", "maximum total `size` of the requests in flight; the API server repeats the calls that are rejected")
}

// defaultShutdownDelay returns a delay only in a Pod. Elsewhere no Service sends calls, and Ctrl-C should end the
// program.
func defaultShutdownDelay() time.Duration {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" { // the kubelet sets it, as rest.InClusterConfig expects
		return 10 * time.Second
	}
	return 0
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
		for name := range strings.SplitSeq(c.names, ",") {
			auth.Names = append(auth.Names, strings.TrimSpace(name))
		}
	}
	return auth
}

// serve serves until ctx ends. If one part of the program fails, serve stops the others and returns the first error.
//
// The server answers calls for a while after the end of ctx. Calls need the certificate and the caches of the hooks, so
// these run with another context, named working. Once the server has stopped, serve calls end, which ends that context.
func (p Program) serve(ctx, working context.Context, end func(), j *job) error {
	registry, logger := j.deps.registry, j.deps.Logger
	source, install, served := j.files.source(logger), func(context.Context) error { return nil }, j.hooks
	if j.managed.on {
		s, err := j.selfManaged()
		if err != nil {
			return err
		}
		source, served = s.source, s.installer.Hooks()
		install = func(ctx context.Context) error { return s.run(ctx, j.deps) }
		if err := metrics.Installation(registry, j.name, s.installer); err != nil {
			return err
		}
	}
	serving, err := p.serverOptions(j, source)
	if err != nil {
		return err
	}
	if serving.Listener == nil {
		if serving.Listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", j.serving.addr); err != nil {
			return fmt.Errorf("--addr: %w", err)
		}
		defer func() { _ = serving.Listener.Close() }() // an error is expected: the server closes it, too
	}
	server := webhook.NewServer(serving, served...)
	if err := metrics.Server(registry, "hooks", server.Load); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	first := make(chan error, 1)
	failed := func(err error) error {
		if err == nil {
			return nil
		}
		select {
		case first <- err: // logged at once, because the server takes its time to stop
			logger.Error(err, "the program is stopping because a part of it failed")
		default: // may be a consequence of the first error
			logger.Error(err, "another part of the program failed while it was stopping")
		}
		return err
	}
	group.Go(func() error { return failed(j.deps.Start(working)) })
	group.Go(func() error {
		defer end()
		return failed(server.Start(ctx))
	})
	group.Go(func() error { return failed(install(ctx)) })
	group.Go(func() error {
		err := source.Start(working)
		if err != nil && !j.managed.on {
			err = fmt.Errorf("%w; or add --self-managed, and the program makes its certificate and installs its hooks", err)
		}
		if failed(err) != nil { // there was never a certificate, so there are no calls to wait for
			err = errors.Join(err, serving.Listener.Close())
		}
		return err
	})
	if err := group.Wait(); err == nil {
		return nil
	}
	return <-first
}

// serverOptions returns the options of the server, after the changes of Program.Options.
func (p Program) serverOptions(j *job, source certs.Source) (webhook.Options, error) {
	registry := j.deps.registry
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		var registered prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &registered) { // the hooks may have registered the same
			return webhook.Options{}, err
		}
	}
	observed, err := metrics.New(registry, metrics.Options{Hooks: j.hooks})
	if err == nil {
		err = metrics.Source(registry, "serving", source)
	}
	if err != nil {
		return webhook.Options{}, err
	}
	serving := webhook.Options{
		TLSConfig:        certs.TLSConfig(source),
		Observers:        []webhook.Observer{observed},
		ClientAuth:       j.clients.auth(),
		MaxInFlightBytes: j.serving.maxInFlightBytes.Value(),
		ShutdownDelay:    cmp.Or(j.serving.shutdownDelay, -1), // zero would be the default
		OpsAddr:          j.serving.opsAddr,
		Logger:           j.deps.Logger,
		Listener:         p.Listener,
	}
	if serving.OpsAddr != "" {
		serving.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	}
	if p.Options != nil {
		p.Options(&serving)
	}
	own, further := j.ready(source), serving.Ready
	serving.Ready = func(ctx context.Context) error {
		if err := own(ctx); err != nil || further == nil {
			return err
		}
		return further(ctx)
	}
	return serving, nil
}

// ready returns the readiness check. It passes if the API server trusts the certificate of source, and Deps.Ready
// returns nil.
func (j *job) ready(source certs.Source) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := certs.Ready(source)(ctx); err != nil {
			return err
		}
		return j.deps.Ready(ctx)
	}
}
