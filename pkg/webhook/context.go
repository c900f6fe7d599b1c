// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/review"
)

// A callContext is the context that a handler is given: the values of the HTTP request, the
// deadline of the call, and a logger that knows the call. It does what context.WithTimeout and
// logr.NewContext do together; what few handlers ask for, it makes when it is asked.
type callContext struct {
	hook     *Hook
	parent   context.Context
	budget   time.Duration
	start    time.Time
	deadline time.Time
	about    about

	mu     sync.Mutex
	err    error
	done   chan struct{}        // nil as long as nobody asked
	detach func() bool          // from the parent, once somebody waits
	after  map[*func()]struct{} // to be called at the end

	log atomic.Pointer[logr.Logger] // nil as long as nobody asked
}

// about is what a logger is told of a call: nothing, as long as that is not known.
type about struct {
	uid             types.UID
	kind            metav1.GroupVersionKind
	operation       admissionv1.Operation
	namespace, name string
	dryRun          bool
}

func (c *callContext) know(m *review.Metadata) {
	c.about = about{m.UID, m.Kind, m.Operation, m.Namespace, m.Name, m.DryRun}
}

func (c *callContext) begin(parent context.Context, h *Hook, start time.Time, budget time.Duration) {
	c.hook, c.parent, c.start, c.budget = h, parent, start, budget
	c.deadline = start.Add(budget)
	if earlier, ok := parent.Deadline(); ok && earlier.Before(c.deadline) {
		c.deadline = earlier
	}
}

func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		if c.done = make(chan struct{}); c.err != nil {
			close(c.done)
		}
		c.attach()
	}
	return c.done
}

// attach has the end of the parent be the end of the context: until somebody waits for it, it
// is enough to look.
func (c *callContext) attach() {
	if c.err == nil && c.detach == nil {
		c.detach = context.AfterFunc(c.parent, func() { c.cancel(c.parent.Err()) })
	}
}

func (c *callContext) Err() error {
	if err := c.parent.Err(); err != nil {
		c.cancel(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *callContext) Value(key any) any {
	if key == loggerKey {
		return c.logger()
	}
	return c.parent.Value(key)
}

func (c *callContext) String() string { return "context of webhook " + c.hook.Name() }

// AfterFunc is what package context looks for in a context that is not of its own making:
// without it, each context derived from this one would cost a goroutine.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
		c.attach()
	}
	c.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[&f]
		delete(c.after, &f)
		return waits
	}
}

// cancel ends the context, unless it has ended.
func (c *callContext) cancel(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	if c.detach != nil {
		c.detach()
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}

// expire ends the context at its deadline.
func (c *callContext) expire() { c.cancel(context.DeadlineExceeded) }

func (c *callContext) expired() bool { return c.Err() == context.DeadlineExceeded } //nolint:errorlint // it is the one that was set

// logger returns the logger of the hook with the keys of the call.
func (c *callContext) logger() logr.Logger {
	if log := c.log.Load(); log != nil {
		return *log
	}
	log := c.hook.loggerFor(c.parent)
	if a := &c.about; a.uid != "" {
		log = log.WithValues("requestUID", clip(string(a.uid)), "gvk", clip(kindText(a.kind)),
			"operation", clip(string(a.operation)), "namespace", clip(a.namespace), "name", clip(a.name))
	}
	c.log.Store(&log)
	return log
}

// loggerKey is the key that logr.FromContext asks a context for.
var loggerKey = func() any {
	var probe keyProbe
	_, _ = logr.FromContext(&probe)
	return probe.key
}()

// A keyProbe remembers what it was asked for.
type keyProbe struct {
	context.Context
	key any
}

func (p *keyProbe) Value(key any) any { p.key = key; return nil }

// loggerFor returns the logger of the hook, or else that of the HTTP request, or else slog's
// default.
func (h *Hook) loggerFor(ctx context.Context) logr.Logger {
	log := contextLogger(ctx)
	if h.logger != nil {
		log = *h.logger
	}
	return log.WithValues("webhook", h.Name())
}

func contextLogger(ctx context.Context) logr.Logger {
	if log, err := logr.FromContext(ctx); err == nil {
		return log
	}
	return logr.FromSlogHandler(slog.Default().Handler())
}

// logsDetails reports whether anybody reads what is logged at V(1): to find that out must be
// cheap.
func (h *Hook) logsDetails(ctx context.Context) bool {
	if h.logger != nil {
		return h.logger.V(1).Enabled()
	}
	if log, err := logr.FromContext(ctx); err == nil {
		return log.V(1).Enabled()
	}
	return slog.Default().Enabled(ctx, slog.LevelInfo-1)
}
