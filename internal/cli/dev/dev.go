// SPDX-License-Identifier: Apache-2.0

// Package dev implements "admitkit dev". It runs hooks behind a real API server, rebuilds and registers them when their
// source changes, and prints each call.
//
// A proxy stands between the API server and the hooks. It has its own certificate and reports the calls. Calls wait in the
// proxy while hooks are rebuilt, so that a change of the source fails no call.
package dev

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
)

// A session is one run of the command.
type session struct {
	o        Options
	s        *screen.Screen
	out      *printer
	config   *rest.Config        // client configuration of an existing cluster
	flags    map[string][]string // flags of the API server that dev starts
	target   target
	started  chan struct{} // closed when the local API server has started or failed
	startErr error         // set before started is closed
	proxy    *proxy
	records  *registry
	watch    *watcher

	current *generation
	mounted []configuration
	routes  map[string]route
}

// A target is the API server with which the hooks are registered: a localServer or an existingCluster.
type target interface {
	// done is closed when the API server has ended. err then returns the reason.
	done() <-chan struct{}
	err() error
	// close stops a local server, or removes the registrations from a cluster.
	close() error
}

// Run runs "admitkit dev" until ctx ends, which is not an error.
func Run(ctx context.Context, s *screen.Screen, o Options) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	d := &session{o: o, s: s, started: make(chan struct{})}
	if o.Cluster {
		if d.config, err = o.Where.Config(); err != nil {
			return err
		}
	} else if d.flags, err = apiserver.ParseFlags(o.Flags); err != nil {
		return err
	}
	d.out = newPrinter(s, o.JSON)
	defer d.out.close()
	defer func() { err = errors.Join(ignoreInterrupt(ctx, err), d.close()) }()
	if err := d.start(ctx); err != nil {
		return err
	}
	return d.follow(ctx)
}

// ignoreInterrupt returns nil after Ctrl-C, which is the normal end, and otherwise err.
func ignoreInterrupt(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// start builds the hooks while the API server starts, registers the hooks, and applies the objects of --apply.
func (d *session) start(ctx context.Context) error {
	samples, err := readSamples(ctx, d.o.Apply, d.s)
	if err != nil {
		return err
	}
	if err := d.checkPackage(ctx); err != nil {
		return err
	}
	var first *generation
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		// The process of the hooks outlives start, so it gets ctx and not bothCtx.
		if first, err = d.open(ctx); err != nil {
			return err
		}
		d.current = first
		return nil
	})
	if !d.o.Cluster { // joinCluster asks the user, so it waits until the hooks are built
		both.Go(func() (err error) {
			defer close(d.started)
			d.target, d.startErr = startServer(bothCtx, d)
			return d.startErr
		})
	}
	if err := both.Wait(); err != nil {
		return err
	}
	if d.o.Cluster {
		if d.target, err = joinCluster(ctx, d); err != nil {
			return err
		}
	}
	if err := samples.applyFirst(ctx, d.records); err != nil {
		return err
	}
	d.current = nil // install sets it again
	if _, err := d.install(ctx, first); err != nil {
		first.close()
		return err
	}
	d.ready()
	return samples.applyOthers(ctx, d)
}

// checkPackage finds a package that cannot have hooks before dev starts to build an API server, which takes minutes.
func (d *session) checkPackage(ctx context.Context) error {
	if d.o.URL != "" {
		return nil
	}
	err := gohooks.Check(ctx, d.o.Dir, d.o.Package)
	if errors.Is(err, gohooks.ErrNoModule) {
		err = problem.Hint(err, "admitkit dev --url URL --webhook-configuration FILE  # a running webhook, in any language")
	}
	return err
}

// open builds and starts the hooks. It watches their sources from before the build, so that no change is missed.
func (d *session) open(ctx context.Context) (*generation, error) {
	if d.o.URL != "" {
		g, err := openURL(ctx, d.o.URL, d.o.CAFile, d.o.Files, d.s)
		if err != nil {
			return nil, err
		}
		return g, g.probe(ctx)
	}
	watch, watching := newWatcher(ctx, d.o.Dir, d.o.Package)
	g, err := buildPackage(ctx, d.o.buildOptions(d.out), d.access)
	switch {
	case err != nil: // err is more precise than the error of newWatcher from go list
		if watching == nil {
			watch.close()
		}
		return nil, err
	case watching != nil:
		g.close()
		return nil, watching
	}
	d.watch = watch
	go watch.run()
	return g, nil
}

// install replaces the current generation without failing a call. registered reports whether the registration changed.
func (d *session) install(ctx context.Context, g *generation) (registered bool, err error) {
	mounted, routes := d.records.mount(g.configurations, g.to)
	d.proxy.setRoutes(routes)
	d.proxy.resume() // the new hooks answer calls of the old registration too
	registered, err = d.records.apply(ctx, mounted)
	if err != nil {
		d.proxy.setRoutes(d.routes)
		d.proxy.dropOthers(d.routes)
		if d.current != nil && ctx.Err() == nil {
			_, back := d.records.apply(ctx, d.mounted)
			err = errors.Join(err, back)
		}
		g.to.calls.Wait()
		return registered, err
	}
	d.proxy.dropOthers(routes)
	old := d.current
	d.current, d.mounted, d.routes = g, mounted, routes
	if old != nil {
		old.to.calls.Wait()
		old.close()
	}
	return registered, nil
}

// follow handles changes of the sources and crashes of the hooks, until ctx or the API server ends.
func (d *session) follow(ctx context.Context) error {
	var changes <-chan struct{}
	if d.watch != nil {
		changes = d.watch.changes
	}
	for {
		crashed, why := d.current.ended()
		select {
		case <-ctx.Done():
			return nil
		case <-d.target.done():
			return d.target.err()
		case <-changes:
			d.proxy.pause()
			d.rebuild(ctx)
			d.proxy.resume()
		case <-crashed:
			if interrupted(ctx) {
				return nil
			}
			d.out.problem("crashed", "the hooks have crashed; restarting them", why())
			d.proxy.pause()
			d.restart(ctx, changes)
			d.proxy.resume()
		}
	}
}

// interrupted reports whether a process has ended because of Ctrl-C. The process can receive the signal before ctx
// ends, so interrupted waits up to 300 ms for the end of ctx.
func interrupted(ctx context.Context) bool {
	wait := time.NewTimer(300 * time.Millisecond)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-wait.C:
		return false
	}
}

// rebuild builds the hooks, if their sources have changed, and installs them. After an error, the old hooks stay.
func (d *session) rebuild(ctx context.Context) {
	d.watch.awaitQuiet(ctx)
	if ctx.Err() != nil || !d.watch.changed() {
		return
	}
	began := time.Now()
	g, err := buildPackage(ctx, d.o.buildOptions(d.out), d.access)
	if watchErr := d.watch.updateFolders(ctx, err != nil); watchErr != nil && err == nil && ctx.Err() == nil {
		d.s.Note("%v", watchErr)
	}
	registered := false
	if err == nil {
		if registered, err = d.install(ctx, g); err != nil {
			g.close()
		}
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.out.problem("buildFailed", "the new hooks cannot be used; the previous hooks keep running", err)
		return
	}
	took := time.Since(began)
	text := fmt.Sprintf("%s built in %.1fs", textutil.Count(len(g.webhooks()), "hook"), took.Seconds())
	if registered {
		text += ", registration updated"
	}
	d.out.event(Event{Event: "rebuilt", Webhooks: d.names(), Registered: registered, Milliseconds: float64(took.Milliseconds()),
		text: clock(d.s.Painter(), time.Now()) + d.s.Painter().Green("rebuilt") + "  " + text})
}

// restart restarts crashed hooks until that succeeds or their source changes.
func (d *session) restart(ctx context.Context, changes <-chan struct{}) {
	for pause := time.Duration(0); ; pause = min(2*pause+250*time.Millisecond, 10*time.Second) {
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return
		case <-changes:
			wait.Stop()
			d.rebuild(ctx)
			if done, _ := d.current.ended(); done != nil && !closed(done) {
				return
			}
			continue
		}
		if err := d.current.restart(ctx); err == nil {
			return
		} else if ctx.Err() == nil {
			d.out.problem("crashed", "the hooks cannot be started", err)
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// close stops everything and removes the registrations. It also works after a failed start.
func (d *session) close() error {
	var errs []error
	if d.watch != nil {
		d.watch.close()
	}
	if d.target != nil {
		errs = append(errs, d.target.close())
	}
	if d.proxy != nil {
		d.proxy.close()
	}
	if d.current != nil {
		d.current.close()
	}
	return errors.Join(errs...)
}

func (d *session) names() []string {
	var names []string
	for _, w := range d.current.webhooks() {
		names = append(names, w.Name)
	}
	return names
}

// ready prints the hooks, and how to connect to the API server.
func (d *session) ready() {
	paint := d.s.Painter()
	e := Event{Event: "ready", Webhooks: d.names()}
	var text strings.Builder
	if server, ok := d.target.(*localServer); ok {
		e.Kubeconfig, e.Server = server.kubeconfig, server.version
		fmt.Fprintf(&text, "kube-apiserver %s calls %s of %s:\n", server.version, textutil.Count(len(e.Webhooks), "hook"), d.o.hooksSource())
	} else if c, ok := d.target.(*existingCluster); ok {
		fmt.Fprintf(&text, "The cluster of context %s calls %s of %s:\n", c.context, textutil.Count(len(e.Webhooks), "hook"), d.o.hooksSource())
	}
	for _, w := range d.current.webhooks() {
		fmt.Fprintf(&text, "  %-10s  %s\n", w.Type, paint.Bold(w.Name))
	}
	if e.Kubeconfig != "" {
		fmt.Fprintf(&text, "In another terminal:\n  %s\n", paint.Bold("export KUBECONFIG="+e.Kubeconfig))
	}
	if d.watch != nil {
		text.WriteString("Edit the source, and the hooks are rebuilt. ")
	}
	text.WriteString("Ctrl-C stops dev.\n")
	e.text = text.String()
	d.out.event(e)
}
