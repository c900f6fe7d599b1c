// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Deps has what hooks may depend on: a client configuration, a logger, metrics, and methods that run caches and other
// background work. [Program.Hooks] gets a Deps as an argument. The methods are safe for concurrent use.
//
// Program.Hooks also runs without a cluster, for example to print the webhook configurations. So Program.Hooks must not
// call the API server itself. It may create clients, listers and informers.
type Deps struct {
	// Config connects to the API server. It is never nil. If no cluster is configured, each request fails with
	// [ErrNoCluster]. It is a copy, so a change affects only the hooks.
	Config *rest.Config
	// Namespace is the namespace of the program: the flag --namespace, or "default" with [NewDeps].
	Namespace string
	// Logger is the logger of the program.
	Logger logr.Logger
	// Metrics registers metrics that the program serves together with its own.
	Metrics prometheus.Registerer

	registry *prometheus.Registry
	mu       sync.Mutex
	work     []work
	checks   []check
	rules    map[string][]rbacv1.PolicyRule // by namespace; "" is the whole cluster
	started  bool
	launch   func(work) // nil before Start and after its context has ended
}

// A check is a condition without which the program is not ready.
type check struct {
	name  string
	ready func() bool
}

// ErrNoCluster is the error of each request to the API server if no cluster is configured.
var ErrNoCluster = errors.New("no cluster is configured: run in a Pod, set $KUBECONFIG, or use --kubeconfig")

// NewDeps returns dependencies, for tests of hooks and for programs without a [Program]. config may be nil if there is
// no cluster. The caller must call Start to run the hooks' background work.
func NewDeps(config *rest.Config, logger logr.Logger) *Deps {
	return newDeps(config, ErrNoCluster, metav1.NamespaceDefault, logger)
}

// newDeps returns dependencies. If config is nil, noCluster is the error of each request.
func newDeps(config *rest.Config, noCluster error, namespace string, logger logr.Logger) *Deps {
	if config == nil {
		config = &rest.Config{Host: "https://no-cluster.invalid", Transport: failing{noCluster}}
	}
	registry := prometheus.NewRegistry()
	return &Deps{
		Config: rest.CopyConfig(config), Namespace: namespace, Logger: logger, Metrics: registry,
		registry: registry, rules: map[string][]rbacv1.PolicyRule{},
	}
}

// failing is an http.RoundTripper that fails each request.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// ReadyIf adds a condition: the program is ready only while ready returns true. Each readiness probe calls ready. While
// it returns false, name says what is missing, such as "rules of the policy server".
func (d *Deps) ReadyIf(name string, ready func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checks = append(d.checks, check{name, ready})
}

// Needs declares permissions that the hooks need in the whole cluster, such as to list Namespaces. --print-rbac prints
// them as rules of the program's ClusterRole.
func (d *Deps) Needs(rules ...rbacv1.PolicyRule) { d.NeedsIn("", rules...) }

// NeedsIn declares permissions that the hooks need in one namespace, such as to read a ConfigMap in [Deps.Namespace].
// --print-rbac prints them as rules of a Role in that namespace. An empty namespace means the whole cluster. Equal rules
// count once, so several hooks can declare what they share.
func (d *Deps) NeedsIn(namespace string, rules ...rbacv1.PolicyRule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, rule := range rules {
		if !slices.ContainsFunc(d.rules[namespace], func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, rule) }) {
			d.rules[namespace] = append(d.rules[namespace], rule)
		}
	}
}

// Rules returns the declared permissions by namespace. Those in the whole cluster have the key "".
func (d *Deps) Rules() map[string][]rbacv1.PolicyRule {
	d.mu.Lock()
	defer d.mu.Unlock()
	rules := maps.Clone(d.rules)
	maps.DeleteFunc(rules, func(_ string, of []rbacv1.PolicyRule) bool { return len(of) == 0 })
	return rules
}

// needsCluster reports whether hooks declared permissions or have caches.
func (d *Deps) needsCluster() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rules) > 0 || slices.ContainsFunc(d.work, func(w work) bool { return w.sync != nil })
}

// Ready returns nil if the caches have synced and all conditions of [Deps.ReadyIf] are met. Otherwise the error names
// what is missing.
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
