// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A generation is hooks that are served: those of a build of a package, or those at a URL.
type generation struct {
	configurations []configuration
	to             *upstream
	close          func()
	// restart serves the same again after the process has ended; nil if there is no process.
	restart func(context.Context) error
	// done is closed when the process has ended, and err says why.
	mu      sync.Mutex
	process *gohooks.Process
	release func() // frees what belongs to the process, once that has ended
}

// packageName is the name of the configuration objects of a package.
const packageName = "hooks"

// buildPackage builds and starts the hooks of a package.
func buildPackage(ctx context.Context, dir, pkg string, log io.Writer) (*generation, error) {
	program, err := gohooks.Build(ctx, dir, pkg, log)
	if err != nil {
		return nil, err
	}
	g := &generation{}
	g.close = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.process != nil {
			_, client := g.to.get()
			client.CloseIdleConnections() // before the server ends them
			g.process.Close()
			g.release()
		}
		program.Close()
	}
	g.restart = func(ctx context.Context) error { return g.start(ctx, program) }
	mutating, validating, err := program.Describe(ctx, webhook.ConfigurationOptions{Name: packageName, URL: "https://localhost"})
	if err == nil {
		err = g.restart(ctx)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	// Whatever a registration says, this is where its hook is served.
	paths := map[string]string{}
	for _, h := range program.Hooks {
		paths[h.Name] = h.Path
	}
	g.configurations = []configuration{{mutating: mutating, validating: validating}}
	if mutating != nil {
		for i := range mutating.Webhooks {
			served(&mutating.Webhooks[i].ClientConfig, paths[mutating.Webhooks[i].Name])
		}
	}
	if validating != nil {
		for i := range validating.Webhooks {
			served(&validating.Webhooks[i].ClientConfig, paths[validating.Webhooks[i].Name])
		}
	}
	return g, nil
}

func served(c *admissionregistrationv1.WebhookClientConfig, path string) {
	if path != "" {
		at := "https://localhost" + path
		*c = admissionregistrationv1.WebhookClientConfig{URL: &at}
	}
}

func (g *generation) start(ctx context.Context, program *gohooks.Program) error {
	// The end of ctx ends the start, but not the process: it goes after those who call it.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, cancel)
	process, err := program.Start(own, gohooks.StartOptions{})
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
	if g.process != nil { // it ended by itself
		g.release()
	}
	g.process, g.release = process, cancel
	if g.to == nil {
		g.to = &upstream{}
	}
	g.to.set(base, client)
	return nil
}

// ended is closed when the process of the hooks has ended; nil if there is none.
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

// An upstream is where hooks are served.
type upstream struct {
	calls  sync.WaitGroup // those that are on their way
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

// openURL reads what is registered for a webhook that runs already.
func openURL(ctx context.Context, address, caFile string, files []string, s *screen.Screen) (*generation, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, problem.New("--url %s: not a URL like https://localhost:9443", address)
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
		return nil, problem.New("no webhook is registered in %s", strings.Join(files, ", ")).
			Hint("name a file with a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration")
	}
	return g, nil
}

// A hookName is a webhook, for people.
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

// probe says early why a webhook at a URL cannot be called.
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
		return response.Body.Close() // whatever it answers, it does
	}
	failed := problem.New("cannot call %s: %w", base, unwrapURL(err))
	if strings.Contains(err.Error(), "x509: ") || strings.Contains(err.Error(), "tls: ") {
		return failed.Hint("--ca-file FILE, with the CA of its certificate in PEM")
	}
	return failed.Hint("start the webhook first")
}
