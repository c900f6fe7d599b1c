// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"

	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// replicas is the number of processes that serve Go hooks. They must give equal answers.
const replicas = 2

// goHooks builds and serves the hooks of a Go package. It returns a function that stops them.
func (r *runner) goHooks(ctx context.Context) ([]target, func(), error) {
	said := &tail{}
	program, err := gohooks.Build(ctx, gohooks.Options{Dir: ".", Package: r.Hook, Log: said})
	if err != nil {
		return nil, nil, err
	}
	var processes []*gohooks.Process
	stop := func() {
		for _, p := range processes {
			p.Close()
		}
		program.Close()
	}
	options := gohooks.StartOptions{Log: said}
	if len(program.Rules) > 0 {
		if options.Kubeconfig = os.Getenv("KUBECONFIG"); options.Kubeconfig == "" {
			program.Close()
			return nil, nil, problem.New("the hooks of %s read a cluster, and $KUBECONFIG is not set", program.Package).
				Hint("admitkit apiserver start  # prints an export line for a cluster on this machine")
		}
	}
	h, err := r.goHook(ctx, program)
	for range replicas {
		if err != nil {
			break
		}
		var p *gohooks.Process
		if p, err = program.Start(ctx, options); err == nil {
			processes = append(processes, p)
			h.urls, h.ca = append(h.urls, strings.TrimSuffix(p.URL, "/")+pathOf(h)), p.CA
			go r.watch(ctx, p, said)
		}
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	r.note("%s of %s, served by %d processes", h.Name, program.Package, replicas)
	return []target{h}, stop, nil
}

// goHook returns the mutating hook that the flags select.
func (r *runner) goHook(ctx context.Context, program *gohooks.Program) (target, error) {
	mutating, _, err := program.Describe(ctx, webhook.ConfigurationOptions{Name: "verify", URL: "https://127.0.0.1"})
	if err != nil {
		return target{}, err
	}
	if mutating == nil {
		return target{}, problem.New("%s has only validating hooks: verify tests mutating ones", program.Package)
	}
	var all []target
	for _, w := range mutating.Webhooks {
		all = append(all, target{MutatingWebhook: w, configuration: mutating.Name, where: program.Package})
	}
	return r.choose(all)
}

// watch ends the run when a process ends by itself.
func (r *runner) watch(ctx context.Context, p *gohooks.Process, said *tail) {
	select {
	case <-ctx.Done():
		return
	case <-p.Done():
	}
	if err := p.Err(); err != nil && ctx.Err() == nil {
		last := said.String()
		if last != "" {
			last = "; its last output was:\n" + last
		}
		r.fail(problem.New("the process with the hooks ended: %w%s", err, last))
	}
}

// A tail keeps the last bytes written to it: hooks may print a line for each of ten thousand calls.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const mostTail = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text = append(t.text, p...); len(t.text) > mostTail {
		t.text = bytes.Clone(t.text[len(t.text)-mostTail:])
	}
	return len(p), nil
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
