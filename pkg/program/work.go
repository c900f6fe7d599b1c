// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Runnable is background work, such as a controller. Start must run it until ctx ends.
type Runnable interface {
	Start(ctx context.Context) error
}

// A Cache is a cache of objects, such as cache.Cache of controller-runtime.
type Cache interface {
	Runnable
	// WaitForCacheSync waits until the cache has synced. It returns false if it has not and never will.
	WaitForCacheSync(ctx context.Context) bool
}

// Informers has the methods that client-go's informer factories have in common. A factory also has a method
// WaitForCacheSync. Its result is a map whose keys are Go types (package informers) or resources (packages
// dynamicinformer and metadatainformer).
type Informers interface {
	Start(stop <-chan struct{})
	Shutdown()
}

// syncedInformers waits until the informers of a factory have synced or stop is closed. It returns for each informer
// whether it has synced. It returns an error if f is not an informer factory.
func syncedInformers(f Informers, stop <-chan struct{}) ([]bool, error) {
	switch f := f.(type) {
	case interface {
		WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool
	}:
		return slices.Collect(maps.Values(f.WaitForCacheSync(stop))), nil
	case interface {
		WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool
	}:
		return slices.Collect(maps.Values(f.WaitForCacheSync(stop))), nil
	}
	return nil, fmt.Errorf("Deps.RunInformers got a %T, which is not an informer factory of client-go: use Deps.RunCache", f)
}

// work is one background task of the hooks.
type work struct {
	run func(ctx context.Context) error
	// sync waits until the task's cache has synced. Nil means that there is no cache.
	sync   func(ctx context.Context) error
	synced chan struct{} // closed when sync has returned without an error
}

// Run runs r until the program has answered its last call. If r fails, the program stops and returns the error of r. Do
// not pass a [Cache], which makes the program fail: [Deps.RunCache] waits until the cache has synced.
func (d *Deps) Run(r Runnable) {
	if _, isCache := r.(Cache); isCache {
		d.add(work{run: func(context.Context) error {
			return fmt.Errorf("Deps.Run got a cache, a %T: use Deps.RunCache, so that the program becomes ready only when the cache has synced", r)
		}})
		return
	}
	d.add(work{run: r.Start})
}

// RunCache runs a cache. The program is ready only when the cache has synced. RunCache calls request, which must
// request the objects that the hooks read, for example with GetInformer of a controller-runtime cache. Such a cache
// fetches only requested objects. Without a request it would appear to have synced at once. If request fails or the
// cache cannot sync, the program stops and returns the error.
func (d *Deps) RunCache(c Cache, request func(ctx context.Context) error) {
	if request == nil {
		request = func(context.Context) error {
			return errors.New("Deps.RunCache got no request: pass a function that requests the objects that the hooks read")
		}
	}
	d.add(work{run: c.Start, sync: func(ctx context.Context) error {
		if err := request(ctx); err != nil {
			return fmt.Errorf("request the objects of a cache: %w", err)
		}
		if !c.WaitForCacheSync(ctx) {
			return errNotSynced
		}
		return nil
	}})
}

var errNotSynced = errors.New("a cache of the hooks did not sync")

// RunInformers runs an informer factory of client-go: typed, dynamic, or for metadata. The program is ready only when
// the factory's caches have synced. Create the informers or listers first: a factory without informers makes the
// program fail.
func (d *Deps) RunInformers(f Informers) {
	d.add(work{
		run: func(ctx context.Context) error {
			f.Start(ctx.Done())
			<-ctx.Done()
			f.Shutdown()
			return nil
		},
		sync: func(ctx context.Context) error {
			f.Start(ctx.Done()) // the factory waits only for informers that have started
			informers, err := syncedInformers(f, ctx.Done())
			if err != nil {
				return err
			}
			if len(informers) == 0 {
				return errors.New("an informer factory of the hooks has no informers: create the listers in the function that makes the hooks")
			}
			if slices.Contains(informers, false) {
				return errNotSynced
			}
			return nil
		},
	})
}

// add adds a background task, and starts it if Start has started the earlier tasks.
func (d *Deps) add(w work) {
	if w.sync != nil {
		w.synced = make(chan struct{})
		d.ReadyIf("caches of the hooks", func() bool {
			select {
			case <-w.synced:
				return true
			default:
				return false
			}
		})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.work = append(d.work, w)
	if d.launch != nil {
		d.launch(w)
	}
}

// launch runs a background task in a group until ctx ends.
func launch(ctx context.Context, group *errgroup.Group, w work) {
	// An error after the end of ctx is a consequence of it, such as ctx.Err().
	untilEnd := func(f func(context.Context) error) func() error {
		return func() error {
			if err := f(ctx); ctx.Err() == nil {
				return err
			}
			return nil
		}
	}
	group.Go(untilEnd(w.run))
	if w.sync != nil {
		group.Go(untilEnd(func(ctx context.Context) error {
			err := w.sync(ctx)
			if err == nil {
				close(w.synced)
			}
			return err
		}))
	}
}

// Start runs all background work until ctx ends or one task fails. It returns the first error, or nil after the end of
// ctx. Work that is added later starts at once. Start must be called once, after the hooks were made.
func (d *Deps) Start(ctx context.Context) error {
	d.mu.Lock()
	if d.started {
		d.mu.Unlock()
		return errors.New("Deps.Start was called twice")
	}
	d.started = true
	group, ctx := errgroup.WithContext(ctx)
	d.launch = func(w work) { launch(ctx, group, w) }
	for _, w := range d.work {
		d.launch(w)
	}
	d.mu.Unlock()
	<-ctx.Done()
	d.mu.Lock()
	d.launch = nil
	d.mu.Unlock()
	return group.Wait()
}
