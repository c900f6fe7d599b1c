// SPDX-License-Identifier: Apache-2.0

// Package dev runs hooks while they are written: behind a real API server, built and registered
// anew when their source changes, with each of their calls told.
//
// A proxy stands between the API server and the hooks. It has a certificate of its own, tells of the
// calls, and has them wait while hooks are built, so that no change fails a call.
package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
)

// Options are the flags of the command.
type Options struct {
	// Package has the hooks, a folder or an import path as seen from Dir; empty: ./hooks, or else the
	// folder itself.
	Dir, Package string
	// URL is where a webhook runs already, with the CA in CAFile and its registration in Files.
	URL, CAFile string
	Files       []string
	// Apply names files and folders with objects to apply at the start.
	Apply []string
	// JSON prints a line of JSON for each event.
	JSON bool

	// Flags are for kube-apiserver, as NAME=VALUE; Port is where it listens.
	Flags []string
	Port  int

	// Cluster registers in a cluster that runs already.
	Cluster   bool
	Where     cluster.Flags
	Advertise string
	Fail, Yes bool
}

// A session is one run of the command.
type session struct {
	o       Options
	s       *screen.Screen
	out     *printer
	config  *rest.Config        // of the cluster that runs already
	flags   map[string][]string // of the API server that is started
	place   place
	proxy   *proxy
	records *registry
	watch   *watcher

	current *generation
	mounted []configuration
	routes  map[string]route
}

// A place is the API server with which hooks are registered.
type place interface {
	// done is closed when it is gone, and err says why.
	done() <-chan struct{}
	err() error
	// close removes what the place itself left anywhere.
	close() error
}

// Run runs until ctx ends, which is no error.
func Run(ctx context.Context, s *screen.Screen, o Options) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	d := &session{o: o, s: s}
	if o.Cluster {
		if d.config, err = o.Where.Config(); err != nil {
			return err
		}
	} else if d.flags, err = serverFlags(o.Flags); err != nil {
		return err
	}
	d.out = newPrinter(s, o.JSON)
	defer d.out.close()
	defer func() { err = errors.Join(ended(ctx, err), d.close()) }()
	if err := d.start(ctx); err != nil {
		return err
	}
	return d.follow(ctx)
}

// ended: Ctrl-C is how it ends.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (o *Options) check() error {
	switch {
	case o.URL == "" && (len(o.Files) > 0 || o.CAFile != ""):
		return problem.New("--webhook-configuration and --ca-file are for a webhook that runs already, at --url")
	case o.URL != "" && o.Package != "":
		return problem.New("a package and --url: there is one or the other")
	case o.URL != "" && len(o.Files) == 0:
		return problem.New("--url needs --webhook-configuration, which says what the webhook is called for").
			Hint("admitkit dev --url %s --webhook-configuration FILE", o.URL)
	case o.Cluster && (len(o.Flags) > 0 || o.Port != 0):
		return problem.New("--flag and --port are for an API server that is started here, not for --cluster")
	case !o.Cluster && (o.Advertise != "" || o.Fail || o.Yes || o.Where.Context != "" || o.Where.Kubeconfig != ""):
		return problem.New("--advertise, --fail, --yes, --context and --kubeconfig are for --cluster")
	}
	if o.Dir == "" {
		o.Dir = "."
	}
	if o.URL == "" && o.Package == "" {
		o.Package = "."
		if info, err := os.Stat(filepath.Join(o.Dir, "hooks")); err == nil && info.IsDir() {
			o.Package = "./hooks"
		}
	}
	return nil
}

// what names the hooks, for people.
func (o *Options) what() string { return cmp.Or(o.Package, o.URL) }

// start builds the hooks while the API server starts, and brings them together.
func (d *session) start(ctx context.Context) error {
	samples, err := readSamples(ctx, d.o.Apply, d.s)
	if err != nil {
		return err
	}
	var first *generation
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		// The process lives longer than the start, so it has the other context.
		if first, err = d.open(ctx); err != nil {
			return err
		}
		d.current = first
		return nil
	})
	if !d.o.Cluster { // what is asked for a cluster is asked once the hooks are known to be good
		both.Go(func() (err error) {
			d.place, err = startServer(bothCtx, d)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return err
	}
	if d.o.Cluster {
		if d.place, err = joinCluster(ctx, d); err != nil {
			return err
		}
	}
	if err := samples.applyFirst(ctx, d.records); err != nil {
		return err
	}
	d.current = nil // install takes it over
	if _, err := d.install(ctx, first); err != nil {
		first.close()
		return err
	}
	d.ready()
	return samples.applyOthers(ctx, d)
}

// open builds the hooks, and watches their sources from before that.
func (d *session) open(ctx context.Context) (*generation, error) {
	if d.o.URL != "" {
		g, err := openURL(ctx, d.o.URL, d.o.CAFile, d.o.Files, d.s)
		if err != nil {
			return nil, err
		}
		return g, g.probe(ctx)
	}
	watch, watching := newWatcher(ctx, d.o.Dir, d.o.Package)
	g, err := buildPackage(ctx, d.o.Dir, d.o.Package, d.out)
	switch {
	case err != nil: // which says more than go list does
		if watching == nil {
			watch.close()
		}
		if errors.Is(err, gohooks.ErrNoModule) {
			err = problem.Hint(err, "admitkit dev --url URL --webhook-configuration FILE  # a webhook that runs already, in any language")
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

// install has a generation take over from the one before, without failing a call.
func (d *session) install(ctx context.Context, g *generation) (registered bool, err error) {
	mounted, routes := d.records.mount(g.configurations, g.to)
	d.proxy.setRoutes(routes)
	d.proxy.resume() // what was called for before is answered by the new ones already
	registered, err = d.records.apply(ctx, mounted)
	if err != nil {
		d.proxy.setRoutes(d.routes)
		d.proxy.drop(d.routes)
		if d.current != nil && ctx.Err() == nil {
			_, back := d.records.apply(ctx, d.mounted)
			err = errors.Join(err, back)
		}
		g.to.calls.Wait()
		return registered, err
	}
	d.proxy.drop(routes)
	old := d.current
	d.current, d.mounted, d.routes = g, mounted, routes
	if old != nil {
		old.to.calls.Wait()
		old.close()
	}
	return registered, nil
}

// follow waits for whatever comes next.
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
		case <-d.place.done():
			return d.place.err()
		case <-changes:
			d.proxy.pause()
			d.rebuild(ctx)
			d.proxy.resume()
		case <-crashed:
			if interrupted(ctx) {
				return nil
			}
			d.out.problem("crashed", "the hooks ended; they are started again", why())
			d.proxy.pause()
			d.again(ctx, changes)
			d.proxy.resume()
		}
	}
}

// interrupted reports whether Ctrl-C is why a process has ended: that reaches it no later than us.
func interrupted(ctx context.Context) bool {
	moment := time.NewTimer(300 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-moment.C:
		return false
	}
}

// rebuild builds the hooks and puts the new ones in the place of the old.
func (d *session) rebuild(ctx context.Context) {
	d.watch.await(ctx)
	if ctx.Err() != nil || !d.watch.changed() {
		return
	}
	began := time.Now()
	g, err := buildPackage(ctx, d.o.Dir, d.o.Package, d.out)
	if looking := d.watch.look(ctx, err != nil); looking != nil && err == nil && ctx.Err() == nil {
		d.s.Note("%v", looking)
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
		d.out.problem("buildFailed", "the new hooks are no good; the ones from before go on", err)
		return
	}
	took := time.Since(began)
	text := fmt.Sprintf("%s built in %.1fs", textutil.Count(len(g.webhooks()), "hook"), took.Seconds())
	if registered {
		text += ", and the registration is another one"
	}
	d.out.event(Event{Event: "rebuilt", Webhooks: d.names(), Registered: registered, Milliseconds: float64(took.Milliseconds()),
		text: clock(d.s.Painter(), time.Now()) + d.s.Painter().Green("rebuilt") + "  " + text})
}

// again starts hooks that ended by themselves, until that works or their source changes.
func (d *session) again(ctx context.Context, changes <-chan struct{}) {
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

// close takes back everything, also after a start that failed in the middle.
func (d *session) close() error {
	var errs []error
	if d.watch != nil {
		d.watch.close()
	}
	if d.place != nil {
		errs = append(errs, d.place.close())
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

// ready tells what there is to do now.
func (d *session) ready() {
	paint := d.s.Painter()
	e := Event{Event: "ready", Webhooks: d.names()}
	var text strings.Builder
	if server, ok := d.place.(*localServer); ok {
		e.Kubeconfig, e.Server = server.kubeconfig, server.version
		fmt.Fprintf(&text, "kube-apiserver %s calls %s of %s:\n", server.version, textutil.Count(len(e.Webhooks), "hook"), d.o.what())
	} else if c, ok := d.place.(*joined); ok {
		fmt.Fprintf(&text, "The cluster of context %s calls %s of %s:\n", c.context, textutil.Count(len(e.Webhooks), "hook"), d.o.what())
	}
	for _, w := range d.current.webhooks() {
		fmt.Fprintf(&text, "  %-10s  %s\n", w.Type, paint.Bold(w.Name))
	}
	if e.Kubeconfig != "" {
		fmt.Fprintf(&text, "In another terminal:\n  %s\n", paint.Bold("export KUBECONFIG="+e.Kubeconfig))
	}
	if d.watch != nil {
		text.WriteString("A change of the source is built and used at once. ")
	}
	text.WriteString("Ctrl-C ends it.\n")
	e.text = text.String()
	d.out.event(e)
}
