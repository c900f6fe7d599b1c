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
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
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
	// NotFoundFor is how long a Reader remembers that an object does not exist, from the start of the request. Zero and
	// negative mean not at all. While a Reader remembers it, Get does not find the object, even if it has been created
	// since.
	NotFoundFor time.Duration
	// Timeout limits one live request. Zero means 10 s, negative no limit. A call waits no longer than its own context
	// allows. The request continues for other calls that wait for it.
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
	fromLive   = "live"   // a live request, perhaps one that several reads shared
	fromMemory = "memory" // the object is remembered as missing
	fromNone   = "failed"
)

// maxRemembered is the largest number of missing objects that a Reader remembers.
const maxRemembered = 4096

// A Reader reads objects of one resource. It is safe for concurrent use.
type Reader[T any] struct {
	options  Options[T]
	requests singleflight.Group
	slots    *semaphore.Weighted
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
	reads, err := counter(o.Metrics)
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return nil, errors.Join(errs...)
	}
	return &Reader[T]{
		options: o, reads: reads, missing: cache.NewLRUExpireCache(maxRemembered),
		slots: semaphore.NewWeighted(limit(int64(o.MaxLive), 10, math.MaxInt64)),
	}, nil
}

// limit returns value, or byDefault for zero, or most for a negative value.
func limit[N int64 | time.Duration](value, byDefault, most N) N {
	if value < 0 {
		return most
	}
	return cmp.Or(value, byDefault)
}

func counter(on prometheus.Registerer) (*prometheus.CounterVec, error) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "admitkit_reads_total",
		Help: "Objects that hooks read, by resource and source (cache, live, memory of missing objects, failed).",
	}, []string{"resource", "source"})
	if on == nil {
		return c, nil
	}
	err := on.Register(c)
	var same prometheus.AlreadyRegisteredError
	if errors.As(err, &same) {
		if other, ok := same.ExistingCollector.(*prometheus.CounterVec); ok {
			return other, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reads: %w", err)
	}
	return c, nil
}

// Get returns an object, which the caller must not change. It looks in the cache, and on a miss asks the API server
// once. The error wraps [ErrNotFound] if there is no such object, or the error of ctx if ctx ended first. The error
// never has an API status, because a hook that returned an error with one would deny the request instead of failing.
func (r *Reader[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	found, err := r.options.Cached(namespace, name)
	switch {
	case err == nil:
		r.count(fromCache)
		return found, nil
	case !apierrors.IsNotFound(err):
		r.count(fromNone)
		return *new(T), r.failure(namespace, name, err)
	}
	if _, gone := r.missing.Get(key{namespace, name}); gone {
		r.count(fromMemory)
		return *new(T), r.notFound(namespace, name)
	}
	if found, err = *new(T), ctx.Err(); err == nil {
		found, err = r.live(ctx, namespace, name)
	}
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

// live gets an object from the API server. Concurrent calls for one object share a request, which therefore does not
// end with the context of the first call.
func (r *Reader[T]) live(ctx context.Context, namespace, name string) (found T, err error) {
	answer := r.requests.DoChan(namespace+"\x00"+name, func() (result any, err error) {
		defer func() {
			if p := recover(); p != nil { // a panic here would end the program
				err = fmt.Errorf("Options.Live panicked: %v", p)
			}
		}()
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit(r.options.Timeout, 10*time.Second, math.MaxInt64))
		defer cancel()
		if err := r.slots.Acquire(shared, 1); err != nil {
			return nil, fmt.Errorf("too many requests are waiting for the API server: %w", err)
		}
		defer r.slots.Release(1)
		start := time.Now()
		object, err := r.options.Live(shared, namespace, name)
		if keep := r.options.NotFoundFor - time.Since(start); apierrors.IsNotFound(err) && keep > 0 {
			r.missing.Add(key{namespace, name}, nil, keep)
		}
		return object, err
	})
	select {
	case a := <-answer:
		if a.Err != nil {
			return found, a.Err
		}
		found, _ = a.Val.(T)
		return found, nil
	case <-ctx.Done():
		return found, ctx.Err()
	}
}

func (r *Reader[T]) count(source string) {
	r.reads.WithLabelValues(r.options.Resource, source).Inc()
}

// Rule returns the permissions that a Reader and its informer need: get, list and watch. Pass it to Deps.Needs of
// package program, so that it becomes part of the RBAC manifest.
func Rule(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
}
