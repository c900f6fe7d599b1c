// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Deps has what hooks may depend on: a client configuration, a logger, metrics, and a place for caches and other background work.
// The function that makes the hooks gets it. Its methods are safe for concurrent use.
//
// The function runs also where there is no cluster, so that the tools can read the registrations of the hooks. It must
// not call the API server itself. It may create clients, listers and informers.
type Deps struct {
	// Config connects to the API server. It is never nil. If no cluster is configured, each request fails with
	// [ErrNoCluster].
	Config *rest.Config
	// Logger is the logger of the program.
	Logger logr.Logger
	// Metrics registers metrics that the program serves with its own.
	Metrics prometheus.Registerer

	registry  *prometheus.Registry
	mu        sync.Mutex
	runnables []runnable
	checks    []check
	rules     []rbacv1.PolicyRule
}

// A Runnable runs until ctx ends. A cache of controller-runtime is one.
type Runnable interface {
	Start(ctx context.Context) error
}

// A runnable is a Runnable of the hooks. synced is closed when its cache has synced, and nil if it has none.
type runnable struct {
	Runnable
	cache  interface{ WaitForCacheSync(context.Context) bool }
	synced chan struct{}
}

// Informers are what a SharedInformerFactory of client-go offers.
type Informers interface {
	Start(stop <-chan struct{})
	WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool
	Shutdown()
}

// A check is a condition without which the program is not ready.
type check struct {
	name  string
	ready func() bool
}

// ErrNoCluster is the error of each request to the API server if no cluster is configured.
var ErrNoCluster = errors.New("no cluster is configured: run in a Pod, set $KUBECONFIG, or use --kubeconfig")

// NewDeps returns dependencies, for tests of hooks and for programs without a [Program]. config may be nil if there is no
// cluster. The caller must call Start for the hooks' background work.
func NewDeps(config *rest.Config, logger logr.Logger) *Deps {
	return newDeps(config, ErrNoCluster, logger)
}

// newDeps returns dependencies. If config is nil, noCluster is the error of each request.
func newDeps(config *rest.Config, noCluster error, logger logr.Logger) *Deps {
	if config == nil {
		config = &rest.Config{Host: "https://no-cluster.invalid", Transport: failing{noCluster}}
	}
	registry := prometheus.NewRegistry()
	return &Deps{Config: config, Logger: logger, Metrics: registry, registry: registry}
}

// failing fails each request.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// Run runs r while the program runs. If r has a method WaitForCacheSync(ctx) bool, as a cache of controller-runtime has,
// the program is not ready until the method has returned true. If r fails, the program ends with its error.
func (d *Deps) Run(r Runnable) {
	one := runnable{Runnable: r}
	if cache, ok := r.(interface{ WaitForCacheSync(context.Context) bool }); ok {
		one.cache, one.synced = cache, make(chan struct{})
		d.ReadyIf("caches of the hooks", func() bool {
			select {
			case <-one.synced:
				return true
			default:
				return false
			}
		})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runnables = append(d.runnables, one)
}

// RunInformers runs a SharedInformerFactory of client-go. The program is not ready until the factory's caches have synced.
// Request the informers or listers before this function returns its hooks: the factory starts only those.
func (d *Deps) RunInformers(f Informers) { d.Run(&runningInformers{factory: f}) }

// ReadyIf makes the program ready only if the function returns true. It is called by each readiness probe. name says what
// is missing, such as "rules of the policy server".
func (d *Deps) ReadyIf(name string, ready func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checks = append(d.checks, check{name, ready})
}

// Needs declares permissions of the program, such as to list Namespaces. They become rules of its ClusterRole, see
// --print-rbac.
func (d *Deps) Needs(rules ...rbacv1.PolicyRule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = append(d.rules, rules...)
}

// Rules returns the declared permissions.
func (d *Deps) Rules() []rbacv1.PolicyRule {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.rules)
}

// Start runs all background work until ctx ends or one part fails. It returns the first error. It must be called once at
// most, after the hooks were made.
func (d *Deps) Start(ctx context.Context) error {
	d.mu.Lock()
	runnables := slices.Clone(d.runnables)
	d.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range runnables {
		group.Go(func() error { return r.Start(ctx) })
		if r.cache != nil {
			group.Go(func() error {
				if r.cache.WaitForCacheSync(ctx) {
					close(r.synced)
				}
				return nil
			})
		}
	}
	<-ctx.Done()
	return group.Wait()
}

// needsCluster reports whether hooks declared permissions or have caches.
func (d *Deps) needsCluster() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rules) > 0 || slices.ContainsFunc(d.runnables, func(r runnable) bool { return r.cache != nil })
}

// Ready returns an error that names what is missing, or nil.
func (d *Deps) Ready(context.Context) error {
	d.mu.Lock()
	checks := slices.Clone(d.checks)
	d.mu.Unlock()
	var missing []string
	for _, c := range checks {
		if !c.ready() && !slices.Contains(missing, c.name) {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not ready yet: %s", strings.Join(missing, ", "))
	}
	return nil
}

// readyInterval is the interval between two checks of readiness.
const readyInterval = 100 * time.Millisecond

// waitReady waits until Ready returns nil or ctx ends. It logs what is missing.
func (d *Deps) waitReady(ctx context.Context) error {
	last := ""
	return wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		err := d.Ready(ctx)
		if err == nil {
			return true, nil
		}
		if text := err.Error(); text != last {
			d.Logger.Info("the hooks are not installed yet", "because", text)
			last = text
		}
		return false, nil
	})
}

// runningInformers runs a factory.
type runningInformers struct{ factory Informers }

func (i *runningInformers) Start(ctx context.Context) error {
	i.factory.Start(ctx.Done())
	<-ctx.Done()
	i.factory.Shutdown()
	return nil
}

// WaitForCacheSync starts the factory, because it waits only for informers that have started.
func (i *runningInformers) WaitForCacheSync(ctx context.Context) bool {
	i.factory.Start(ctx.Done())
	for _, synced := range i.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return false
		}
	}
	return true
}
