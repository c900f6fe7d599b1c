// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/redact"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Recorder records calls. It is safe for concurrent use.
type Recorder struct {
	log      logr.Logger
	sampler  *sampler
	redactor *redact.Redactor
	keyID    string
	files    *files
	counts   counts

	queue      chan *entry
	queueBytes atomic.Int64
	maxBytes   int64

	closing atomic.Bool
	stop    chan struct{}
	done    chan struct{} // closed when everything is written

	mu   sync.Mutex                                             // held to add a hook
	ends atomic.Pointer[map[hookKey]func(*webhook.Observation)] // what Begin returns; replaced, never changed
}

var _ webhook.Observer = (*Recorder)(nil)

// maxQueued is the maximum number of calls in the queue, and maxCallBytes the maximum size of one, in bytes.
const (
	maxQueued    = 4096
	maxCallBytes = 8 << 20
)

// An entry is a call in the queue. It owns the memory of its Request and Answer.
type entry struct {
	call   Call
	memory []byte
}

// maxReused is the maximum size, in bytes, of a buffer that is kept for the next entry.
const maxReused = 64 << 10

var entries = sync.Pool{New: func() any { return new(entry) }}

func (e *entry) release() {
	e.call = Call{}
	if cap(e.memory) > maxReused {
		e.memory = nil
	}
	entries.Put(e)
}

func newRecorder(o Options, redactor *redact.Redactor, keyID string) *Recorder {
	r := &Recorder{
		log: o.Logger, redactor: redactor, keyID: keyID, sampler: newSampler(&o, time.Now()),
		queue: make(chan *entry, maxQueued), maxBytes: limit(o.MaxQueueBytes, defaultQueueBytes),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	r.ends.Store(&map[hookKey]func(*webhook.Observation){})
	r.files = newFiles(&o, &r.counts, r.sampler.forget)
	return r
}

func (r *Recorder) start() {
	go r.work()
	go r.report()
}

// Begin implements [webhook.Observer]. The function that it returns records the call.
func (r *Recorder) Begin(ctx context.Context, h *webhook.Hook, _ *http.Request) (context.Context, func(*webhook.Observation)) {
	key := hookKey{h.Name(), h.Mutating()}
	if end := (*r.ends.Load())[key]; end != nil {
		return ctx, end
	}
	return ctx, r.add(key, h.Path())
}

// A hookKey identifies a hook. Copies of a hook, such as those of a server, have the same key.
type hookKey struct {
	name     string
	mutating bool
}

// add adds a hook. It returns the function for the end of its calls.
func (r *Recorder) add(key hookKey, path string) func(*webhook.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := maps.Clone(*r.ends.Load())
	if more[key] == nil {
		more[key] = func(o *webhook.Observation) { r.observe(&ended{Observation: o, path: path}) }
	}
	r.ends.Store(&more)
	return more[key]
}

// An ended is a call that has ended.
type ended struct {
	*webhook.Observation
	path string
	// body and answer are those of a call that no hook handled. Those of a hook are in the Observation.
	body, answer []byte
}

func (c *ended) appendBody(dst []byte) []byte { return append(c.AppendBody(dst), c.body...) }

func (c *ended) appendAnswer(dst []byte) []byte { return append(c.AppendAnswer(dst), c.answer...) }

// observe adds a call to the queue if the sampler chooses it. It never blocks: without memory it drops the call.
func (r *Recorder) observe(o *ended) {
	if o.BodyBytes == 0 || r.closing.Load() {
		return // without its body, a call cannot be replayed
	}
	r.counts.calls.Add(1)
	now, size := time.Now(), o.BodyBytes+o.AnswerBytes
	why, combination := r.sampler.choose(o, size, now)
	switch {
	case why == skip:
		r.counts.notSampled.Add(1)
		return
	case size > maxCallBytes:
		r.counts.tooLarge.Add(1)
		return
	}
	if !r.reserve(int64(size)) {
		r.counts.queueFull.Add(1)
		r.sampler.undo(why, combination)
		return
	}
	e := entries.Get().(*entry)
	e.memory = o.appendBody(e.memory[:0])
	body := len(e.memory)
	e.memory = o.appendAnswer(e.memory)
	e.call = Call{
		Time: now.Add(-o.Duration), Webhook: o.Hook, Type: typeOf(o.Observation), Path: o.path,
		Outcome: o.Outcome, Mode: o.Mode, Withheld: o.Withheld, Code: int(o.Code), Duration: o.Duration,
		Novel: why == asNovel, Key: r.keyID, Request: e.memory[:body], Answer: e.memory[body:],
	}
	select {
	case r.queue <- e:
	default:
		r.counts.queueFull.Add(1)
		r.sampler.undo(why, combination)
		r.finish(e)
	}
}

func typeOf(o *webhook.Observation) string {
	switch {
	case o.Mutating:
		return "mutating"
	case o.Hook != "":
		return "validating"
	}
	return ""
}

// reserve reserves memory of the queue. It reports whether there was enough.
func (r *Recorder) reserve(size int64) bool {
	if r.queueBytes.Add(size) <= r.maxBytes {
		return true
	}
	r.queueBytes.Add(-size)
	return false
}

func (r *Recorder) finish(e *entry) {
	r.queueBytes.Add(-int64(len(e.memory)))
	e.release()
}

// flushInterval is the time after which records are written to the disk, at the latest.
const flushInterval = time.Second

// work writes the calls in the queue to files until the recorder is closed.
func (r *Recorder) work() {
	defer close(r.done)
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case e := <-r.queue:
			r.write(e)
		case <-tick.C:
			r.files.flush()
		case <-r.stop:
			r.drain()
			return
		}
	}
}

// drain writes the calls that are left in the queue.
func (r *Recorder) drain() {
	for {
		select {
		case e := <-r.queue:
			r.write(e)
		default:
			r.files.close()
			return
		}
	}
}

// write redacts a call and writes it to a file.
func (r *Recorder) write(e *entry) {
	defer r.finish(e)
	defer func() {
		if p := recover(); p != nil { // a call must not end the program
			r.counts.unreadable.Add(1)
			r.counts.fail(fmt.Errorf("a call could not be redacted: %v", p))
		}
	}()
	request, answer, err := r.redactor.Call(e.call.Request, e.call.Answer)
	if err != nil {
		if errors.Is(err, redact.ErrTooLarge) {
			r.counts.tooLarge.Add(1)
			return
		}
		r.counts.unreadable.Add(1) // the request is not JSON
		return
	}
	e.call.Request, e.call.Answer, e.call.Path = request, answer, r.redactor.Text(e.call.Path)
	r.files.write(e.call.appendLine(make([]byte, 0, len(request)+len(answer)+512)))
}

// Close stops the recorder, and waits until the calls in the queue are written. Later calls are not recorded. It returns
// an error if the last write failed, or if ctx ends first, for example because the disk does not respond. The calls that
// are still in the queue are then lost. Close may be called again.
func (r *Recorder) Close(ctx context.Context) error {
	if !r.closing.Swap(true) {
		close(r.stop)
	}
	select {
	case <-r.done:
		return r.files.err()
	case <-ctx.Done():
		return fmt.Errorf("record: %d calls are not written, because the disk does not respond: %w", len(r.queue), ctx.Err())
	}
}
