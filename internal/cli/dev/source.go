// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A generation is one running version of the hooks: a build of a package, or a webhook at a URL.
type generation struct {
	configurations []configuration
	to             *upstream
	close          func()
	// restart starts the same build again after its process has ended; nil for a webhook at a URL.
	restart func(context.Context) error

	mu      sync.Mutex       // guards the fields below
	process *gohooks.Process // nil for a webhook at a URL
	release func()           // cancels the context of the process
}

// packageName is the name of the configurations that register the hooks of a package.
const packageName = "hooks"

// An accessFunc returns the client configuration of hooks that declare these permissions.
type accessFunc func(ctx context.Context, rules map[string][]rbacv1.PolicyRule) (*rest.Config, error)

// buildPackage builds and starts the hooks of a package.
func buildPackage(ctx context.Context, o gohooks.Options, access accessFunc) (*generation, error) {
	program, err := gohooks.Build(ctx, o)
	if err != nil {
		return nil, err
	}
	g := &generation{}
	g.close = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.process != nil {
			_, client := g.to.get()
			client.CloseIdleConnections() // before the server closes them
			g.process.Close()
			g.release()
		}
		program.Close()
	}
	g.restart = func(ctx context.Context) error { return g.start(ctx, program, access) }
	mutating, validating, err := program.Describe(ctx, webhook.ConfigurationOptions{Name: packageName, URL: "https://localhost"})
	if err == nil {
		err = g.restart(ctx)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	// The process serves each hook at this path, whatever the registration says.
	paths := map[string]string{}
	for _, h := range program.Hooks {
		paths[h.Name] = h.Path
	}
	g.configurations = []configuration{{mutating: mutating, validating: validating}}
	if mutating != nil {
		for i := range mutating.Webhooks {
			setPath(&mutating.Webhooks[i].ClientConfig, paths[mutating.Webhooks[i].Name])
		}
	}
	if validating != nil {
		for i := range validating.Webhooks {
			setPath(&validating.Webhooks[i].ClientConfig, paths[validating.Webhooks[i].Name])
		}
	}
	return g, nil
}

func setPath(c *admissionregistrationv1.WebhookClientConfig, path string) {
	if path != "" {
		at := "https://localhost" + path
		*c = admissionregistrationv1.WebhookClientConfig{URL: &at}
	}
}

func (g *generation) start(ctx context.Context, program *gohooks.Program, access accessFunc) error {
	var options gohooks.StartOptions
	if program.Deps {
		config, err := access(ctx, program.Rules)
		if err != nil {
			return err
		}
		if options.Kubeconfig, err = writeKubeconfig(config); err != nil {
			return problem.New("cannot write the kubeconfig of the hooks: %w", err)
		}
		defer func() { _ = os.Remove(options.Kubeconfig) }() // the process has read the file once it serves
	}
	// The end of ctx stops the start, but not the started process, which must answer the last calls.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, cancel)
	process, err := program.Start(own, options)
	if err != nil || !detach() {
		cancel()
		if err == nil {
			process.Close()
		}
		return cmp.Or(ctx.Err(), err)
	}
	base, err := url.Parse(process.URL)
	if err != nil {
		process.Close()
		cancel()
		return err
	}
	client, err := clientOf(process.CA)
	if err != nil {
		process.Close()
		cancel()
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process != nil { // it has crashed
		g.release()
	}
	g.process, g.release = process, cancel
	if g.to == nil {
		g.to = &upstream{}
	}
	g.to.set(base, client)
	return nil
}

// ended returns a channel that is closed when the process has ended, and a function for the reason. Both are nil if
// there is no process.
func (g *generation) ended() (<-chan struct{}, func() error) {
	if g == nil {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process == nil {
		return nil, nil
	}
	return g.process.Done(), g.process.Err
}

// An upstream is the address of hooks, with a client for it.
type upstream struct {
	calls  sync.WaitGroup // calls in flight
	mu     sync.Mutex
	base   *url.URL
	client *http.Client
}

func (u *upstream) set(base *url.URL, client *http.Client) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.client != nil {
		u.client.CloseIdleConnections()
	}
	u.base, u.client = base, client
}

func (u *upstream) get() (*url.URL, *http.Client) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.base, u.client
}

func clientOf(ca []byte) (*http.Client, error) {
	transport := &http.Transport{IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second}
	if len(ca) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("no certificate in PEM")
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	return &http.Client{Transport: transport}, nil
}

// openURL returns a generation for the webhook that runs at address. The files have its registration.
func openURL(ctx context.Context, address, caFile string, files []string, s *screen.Screen) (*generation, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, problem.New("--url %s is not a URL like https://localhost:9443", address)
	}
	var ca []byte
	if caFile != "" {
		if ca, err = os.ReadFile(caFile); err != nil {
			return nil, problem.New("--ca-file: %w", err)
		}
	}
	client, err := clientOf(ca)
	if err != nil {
		return nil, problem.New("--ca-file %s: %w", caFile, err)
	}
	all, err := objects.Read(ctx, files, s.In, s.Note)
	if err != nil {
		return nil, err
	}
	sets, err := objects.Sort(all)
	if err != nil {
		return nil, problem.New("%w", err)
	}
	g := &generation{to: &upstream{base: base, client: client}, close: client.CloseIdleConnections}
	for _, m := range sets.Mutating {
		g.configurations = append(g.configurations, configuration{mutating: m.Value})
	}
	for _, v := range sets.Validating {
		g.configurations = append(g.configurations, configuration{validating: v.Value})
	}
	if len(g.webhooks()) == 0 {
		return nil, problem.New("no webhook configuration in %s", strings.Join(files, ", ")).
			Hint("--webhook-configuration FILE, with a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration")
	}
	return g, nil
}

// A hookName is the name and type of a webhook, for messages.
type hookName struct{ Name, Type string }

func (g *generation) webhooks() []hookName {
	var all []hookName
	for _, c := range g.configurations {
		if c.mutating != nil {
			for _, w := range c.mutating.Webhooks {
				all = append(all, hookName{w.Name, "mutating"})
			}
		}
		if c.validating != nil {
			for _, w := range c.validating.Webhooks {
				all = append(all, hookName{w.Name, "validating"})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b hookName) int { return cmp.Compare(a.Type, b.Type) })
	return all
}

// probe returns an error if the webhook at a URL cannot be reached. Any HTTP response counts as success.
func (g *generation) probe(ctx context.Context) error {
	base, client := g.to.get()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(req)
	if err == nil {
		return response.Body.Close()
	}
	failed := problem.New("cannot call %s: %w", base, unwrapURL(err))
	var (
		untrusted *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	if errors.As(err, &untrusted) || errors.As(err, &record) || errors.As(err, &alert) {
		return failed.Hint("--ca-file FILE, with the CA of the webhook's certificate in PEM")
	}
	return failed.Hint("start the webhook first")
}
