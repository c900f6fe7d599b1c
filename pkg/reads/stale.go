// SPDX-License-Identifier: Apache-2.0

package reads

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// brokenFor is how long after an error a watch counts as broken. A reflector tries again after at most 30 s
// (NewReflector), with as much jitter, so a watch that is still broken has another error before this time ends.
const brokenFor = 70 * time.Second

// StaleWhile returns a function that reports whether the cache of an informer may be old, for [Options.Stale]: its list or
// watch failed in the last 70 s, and nothing has arrived since. A watch that is restored without a change in the
// cluster counts as broken until the 70 s are over. StaleWhile sets the informer's watch error handler, which also
// calls client-go's own. It returns an error if the informer has started.
func StaleWhile(informer cache.SharedInformer) (func() bool, error) {
	w := &watchState{informer: informer}
	if err := informer.SetWatchErrorHandlerWithContext(w.failed); err != nil {
		return nil, fmt.Errorf("reads: StaleWhile must be called before the informer starts: %w", err)
	}
	return w.isStale, nil
}

// A watchState remembers the last error of an informer's watch.
type watchState struct {
	informer cache.SharedInformer
	mu       sync.Mutex
	failedAt time.Time
	version  string // last resource version when the watch failed
}

func (w *watchState) failed(ctx context.Context, r *cache.Reflector, err error) {
	w.mu.Lock()
	w.failedAt, w.version = time.Now(), w.informer.LastSyncResourceVersion()
	w.mu.Unlock()
	cache.DefaultWatchErrorHandler(ctx, r, err)
}

func (w *watchState) isStale() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.failedAt.IsZero() && time.Since(w.failedAt) < brokenFor && w.informer.LastSyncResourceVersion() == w.version
}
