// SPDX-License-Identifier: Apache-2.0

// Package replay implements "admitkit replay": it sends recorded calls to another version of a webhook.
package replay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/cli/trust"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/quickack"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/replay"
)

// Options are the flags of "admitkit replay".
type Options struct {
	// Files are recordings, or folders with recordings.
	Files []string
	// URL or Hook is the new version: the URL of a server, or a Go package of hooks. Against is the old one, or empty.
	URL, Hook, Against string
	CAFile, ServerName string
	KeyFile            string
	SecretPaths        []string
	Webhooks           []string
	Workers            int
	Timeout            time.Duration
	// Rate makes the run a load test: see load.ParseRate. Duration is its length, or 0 to send each call once.
	Rate     string
	Duration time.Duration
}

// check checks the options that Run and RunLoad have in common.
func (o *Options) check() error {
	switch {
	case o.URL == "" && o.Hook == "":
		return problem.New("the new version of the webhook is missing").
			Hint("--url https://127.0.0.1:9443 --ca-file ca.crt, for a server").Hint("--hook ./hooks, for a Go package of hooks")
	case o.Workers < 1:
		return problem.New("--connections=%d is too small: the minimum is 1", o.Workers)
	case o.Timeout <= 0:
		return problem.New("--timeout=%s is too short: it must be greater than 0", o.Timeout)
	case o.Duration < 0:
		return problem.New("--duration=%s is negative", o.Duration)
	case o.Duration > 0 && o.Rate == "":
		return problem.New("--duration needs --rate").Hint("--rate max --duration %s", o.Duration)
	case o.Rate != "" && o.Against != "":
		return problem.New("--rate and --against exclude each other: a load test compares nothing")
	}
	return fileExists(o.KeyFile)
}

// Run replays the recordings. It returns no error for changes: see Report.Err.
func Run(ctx context.Context, s *screen.Screen, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &runner{Options: o, screen: s}
	defer r.stop()
	options := replay.Options{
		Files: o.Files, Webhooks: o.Webhooks, Workers: o.Workers, Timeout: o.Timeout, KeyFile: o.KeyFile, SecretPaths: o.SecretPaths,
	}
	var err error
	if options.New, err = r.target(ctx, o.URL, o.Hook); err != nil {
		return nil, err
	}
	if o.Against != "" {
		url, hook := o.Against, ""
		if !strings.Contains(o.Against, "://") {
			url, hook = "", o.Against
		}
		if options.Old, err = r.target(ctx, url, hook); err != nil {
			return nil, err
		}
	}
	progress := s.Progress()
	options.Progress = func(calls int) { progress.Step("replayed %s", textutil.Count(calls, "call")) }
	report, err := replay.Run(ctx, options)
	progress.Done()
	if err != nil {
		return nil, explained(err)
	}
	if o.Hook != "" && unserved(report) {
		return nil, problem.New("no recorded call is for a hook of %s: %s", o.Hook, report.Changes[0].Cause).
			Hint("give the hooks the paths of the recording").Hint("--url URL-WITH-PATH, to send all calls to one hook")
	}
	return &Report{report}, nil
}

// unserved reports whether the server has no hook at the path of any recorded call.
func unserved(r *replay.Report) bool {
	return r.Same == 0 && len(r.Changes) > 0 && !slices.ContainsFunc(r.Changes, func(c replay.Change) bool {
		return c.Class != replay.Failure || !strings.Contains(c.Cause, "no hook is served at")
	})
}

// fileExists returns an error if keyFile is not empty and there is no such file.
func fileExists(keyFile string) error {
	if keyFile == "" {
		return nil
	}
	if _, err := os.Stat(keyFile); err != nil {
		return problem.New("--key-file: %w", err).Hint("--key-file FILE, with the key that admitkit record wrote; without it, secrets are not compared")
	}
	return nil
}

// inFlags replaces the names of package replay in an error by the flags of the command.
var inFlags = strings.NewReplacer("replay: ", "", "Options.SecretPaths", "--secret-path")

func explained(err error) error {
	var unreadable *replay.UnreadableError
	if errors.As(err, &unreadable) {
		return problem.New("%s", inFlags.Replace(err.Error())).Hint("admitkit record writes recordings; see docs/recording.md")
	}
	return problem.New("%s", inFlags.Replace(err.Error()))
}

// A runner starts the versions of the webhook, and stops them.
type runner struct {
	Options
	screen *screen.Screen
	stops  []func()
}

func (r *runner) stop() {
	for _, stop := range slices.Backward(r.stops) { // closes connections before it stops their servers
		stop()
	}
}

// target returns the version at a URL or, if hook is not empty, starts the hooks of a Go package.
func (r *runner) target(ctx context.Context, url, hook string) (*replay.Target, error) {
	if hook != "" {
		return r.hooks(ctx, hook)
	}
	config, err := trust.Config(r.CAFile, r.ServerName)
	if err != nil {
		return nil, err
	}
	client := r.client(config)
	t, err := replay.URL(url, client)
	if err != nil {
		return nil, explained(err)
	}
	return t, reach(ctx, url, client, r.Timeout)
}

// reach returns an error if no server answers at a URL in time. Any answer is good.
func reach(ctx context.Context, url string, client *http.Client, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return problem.New("cannot call %s: %w", url, untrusted.Err).Hint("--ca-file FILE, with the CA of its certificate").Hint("--server-name NAME, if the certificate is for another name")
	case err != nil:
		return problem.New("cannot call %s: %w", url, errors.Unwrap(err)).Hint("start the webhook, or check the address")
	}
	return response.Body.Close()
}

// hooks builds and starts a Go package of hooks.
func (r *runner) hooks(ctx context.Context, pkg string) (*replay.Target, error) {
	program, err := gohooks.BuildOn(ctx, r.screen, pkg)
	if err != nil {
		return nil, err
	}
	r.stops = append(r.stops, program.Close)
	options := gohooks.StartOptions{Kubeconfig: os.Getenv("KUBECONFIG")}
	if len(program.Rules) > 0 && options.Kubeconfig == "" {
		return nil, problem.New("the hooks of %s read a cluster, and $KUBECONFIG is not set", program.Package).
			Hint("admitkit apiserver start  # prints an export line for a cluster on this machine")
	}
	process, err := program.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	r.stops = append(r.stops, process.Close)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(process.CA)
	return replay.URL(process.URL, r.client(config))
}

// client returns a client that calls a webhook as the API server does: HTTP/1.1, and no proxy.
func (r *runner) client(config *tls.Config) *http.Client {
	transport := &http.Transport{
		DialContext: quickack.Dial, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second,
		MaxConnsPerHost: r.Workers, MaxIdleConnsPerHost: r.Workers, IdleConnTimeout: 90 * time.Second,
	}
	r.stops = append(r.stops, transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
