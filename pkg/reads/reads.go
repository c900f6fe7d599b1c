// SPDX-License-Identifier: Apache-2.0

// Package reads lets hooks read objects as the API server's own admission controllers do: from an informer's cache, and
// with one live GET where the cache has no such object. An object that was created a moment ago may not be in the cache
// yet, so a hook that trusts the cache alone denies or fails requests that should be admitted.
//
// A [Reader] limits what misses can cost: concurrent misses of one object share a request, and the number of concurrent
// requests is limited. The client may have a limit of its own: set rest.Config.QPS, whose default is 5 requests a
// second.
package reads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/admitkit/admitkit/internal/counter"
	"github.com/admitkit/admitkit/internal/flight"
)

// ErrNotFound is the error that [Reader.Get] wraps if the object does not exist. It has no API status: if a hook
// returns it, the call fails and the failurePolicy decides. To deny the request instead, return webhook.Deny.
var ErrNotFound = errors.New("does not exist")

// Options configure a [Reader] of objects of type T, a pointer such as *corev1.Namespace.
type Options[T any] struct {
	// Resource is the plural name of the objects for errors and metrics, such as "namespaces". It is required.
	Resource string
	// Cached returns an object from memory. It is required. A lister's Get fits: an error for which
	// apierrors.IsNotFound is true is a miss. For a resource without namespaces, namespace is "".
	Cached func(namespace, name string) (T, error)
	// Live gets an object from the API server. It is required. It needs the permission get: see [Rule].
	Live func(ctx context.Context, namespace, name string) (T, error)
	// NotFoundFor is how long a Reader remembers that an object does not exist, from the start of the request. Zero means
	// a second, negative not at all. During this time Get finds an object that has been created since only if the cache
	// has it.
	NotFoundFor time.Duration
	// Stale reports whether the cache may have old objects, because its watch is cut: see [Watches.Cut]. The Reader
	// answers from the cache nevertheless, and counts these reads with the source stale. Nil means that no read is stale.
	Stale func() bool
	// Timeout limits one live request. Zero means 10 s, negative no limit. A call waits no longer than its own context
	// allows. The request continues for other calls that wait for it, and ends with the last one.
	Timeout time.Duration
	// MaxLive is the largest number of live requests at a time. Zero means 10, negative no limit. Further requests
	// wait.
	MaxLive int
	// Metrics registers the counter admitkit_reads_total with the labels resource and source. Nil means no
	// metrics. Several Readers can share a registerer.
	Metrics prometheus.Registerer
}

// The values of the label source: where the answer of a read came from.
const (
	fromCache  = "cache"
	fromStale  = "stale"  // the cache, while Options.Stale returns true
	fromLive   = "live"   // a live request, perhaps one that several reads shared
	fromMemory = "memory" // the object is remembered as missing, or cannot exist
	fromNone   = "failed"
)

const (
	// maxRemembered is the largest number of missing objects that a Reader remembers.
	maxRemembered = 4096
	// defaultNotFoundFor is the default of Options.NotFoundFor.
	defaultNotFoundFor = time.Second
)

// A Reader reads objects of one resource. It is safe for concurrent use.
type Reader[T any] struct {
	options  Options[T]
	requests *flight.Group[T]
	missing  *cache.LRUExpireCache // the keys of missing objects
	reads    *prometheus.CounterVec
}

// New returns a reader. The error lists required options that are not set, or says that the metrics cannot be
// registered.
func New[T any](o Options[T]) (*Reader[T], error) {
	var errs []error
	if o.Resource == "" {
		errs = append(errs, errors.New("reads: Options.Resource is required, such as \"namespaces\""))
	}
	if o.Cached == nil || o.Live == nil {
		errs = append(errs, errors.New("reads: Options.Cached and Options.Live are required"))
	}
	reads, err := counter.Register(o.Metrics, "admitkit_reads_total",
		"Objects that hooks read, by resource and source (cache, stale cache, live, memory of missing objects, failed).", "resource", "source")
	if err != nil {
		errs = append(errs, fmt.Errorf("reads: %w", err))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	o.NotFoundFor = cmp.Or(o.NotFoundFor, defaultNotFoundFor)
	return &Reader[T]{
		options: o, reads: reads, missing: cache.NewLRUExpireCache(maxRemembered),
		requests: flight.New[T](flight.Options{To: "the API server", Sender: "Options.Live", Timeout: o.Timeout, Most: o.MaxLive, Cancel: true}),
	}, nil
}

// Get returns an object, which the caller must not change. It looks in the cache, and on a miss asks the API server
// once. The error wraps [ErrNotFound] if there is no such object, or the error of ctx if ctx ended first. The error
// never has an API status, because a hook that returned an error with one would deny the request instead of failing.
func (r *Reader[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	found, err := r.options.Cached(namespace, name)
	switch {
	case err == nil:
		r.count(r.cacheSource())
		return found, nil
	case !apierrors.IsNotFound(err):
		r.count(fromNone)
		return *new(T), r.failure(namespace, name, err)
	}
	if !isName(name) {
		r.count(fromMemory)
		return *new(T), r.notFound(namespace, name)
	}
	if _, gone := r.missing.Get(key{namespace, name}); gone {
		r.count(fromMemory)
		return *new(T), r.notFound(namespace, name)
	}
	found, err = r.live(ctx, namespace, name)
	switch {
	case err == nil:
		r.count(fromLive)
		return found, nil
	case apierrors.IsNotFound(err):
		r.count(fromLive)
		return *new(T), r.notFound(namespace, name)
	}
	r.count(fromNone)
	if ctx.Err() != nil {
		return *new(T), fmt.Errorf("reading %s %s: %w", r.options.Resource, key{namespace, name}, ctx.Err())
	}
	return *new(T), r.failure(namespace, name, err)
}

// isName reports whether an object can have the name. Hooks take names from objects that were not validated
// yet, and client-go refuses to send some of these names.
func isName(name string) bool { return name != "" && len(content.IsPathSegmentName(name)) == 0 }

// cacheSource returns the source of a read that the cache answered.
func (r *Reader[T]) cacheSource() string {
	if r.options.Stale != nil && r.options.Stale() {
		return fromStale
	}
	return fromCache
}

type key struct{ namespace, name string }

func (k key) String() string {
	if k.namespace == "" {
		return k.name
	}
	return k.namespace + "/" + k.name
}

func (r *Reader[T]) notFound(namespace, name string) error {
	return fmt.Errorf("%s %s: %w", r.options.Resource, key{namespace, name}, ErrNotFound)
}

// failure returns an error without the API status of err.
func (r *Reader[T]) failure(namespace, name string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("reading %s %s: %s (declare the permission with Deps.Needs and reads.Rule)", r.options.Resource, key{namespace, name}, err.Error())
	}
	return fmt.Errorf("reading %s %s: %s", r.options.Resource, key{namespace, name}, err.Error())
}

// live gets an object from the API server.
func (r *Reader[T]) live(ctx context.Context, namespace, name string) (T, error) {
	return r.requests.Do(ctx, namespace+"\x00"+name, func(ctx context.Context) (T, error) {
		start := time.Now()
		object, err := r.options.Live(ctx, namespace, name)
		if keep := r.options.NotFoundFor - time.Since(start); apierrors.IsNotFound(err) && keep > 0 {
			r.missing.Add(key{namespace, name}, nil, keep)
		}
		return object, err
	})
}

func (r *Reader[T]) count(source string) {
	r.reads.WithLabelValues(r.options.Resource, source).Inc()
}

// Rule returns the permissions that a Reader and its informer need: get, list and watch. Pass it to Deps.Needs of
// package program, so that it becomes part of the RBAC manifest.
func Rule(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
}
