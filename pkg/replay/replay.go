// SPDX-License-Identifier: Apache-2.0

// Package replay sends recorded calls of a webhook to another version of it, and reports what would change: decisions,
// patched objects, and failures.
//
// [Check] is for tests:
//
//	func TestTraffic(t *testing.T) {
//		replay.Check(t, hooks.Images, "testdata/traffic")
//	}
//
// [Run] returns a report, which "admitkit replay" prints. Package record writes the recordings.
//
// # What is compared
//
// A call is compared with its recorded answer, or with the answer of an old version: the decision; code, reason and message
// of a denial; and the object after the patch. The order of the patch's operations does not matter. For a hook that did not
// enforce, the decision that it withheld is compared. Calls without a decision in the recording are not compared, and neither
// are the patches of a hook in Shadow mode.
//
// The recording has pseudonyms in place of secrets, so a webhook that decides by the value of a secret decides by its
// pseudonym. With the key of the recorder, answers are compared in full. Without the key, a secret that the webhook itself
// sets, such as the value of an environment variable, is not compared.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/review"
)

// Options configure [Run]. Files and New are required.
type Options struct {
	// Files are files of a recorder, or folders with such files: *.jsonl and *.jsonl.gz.
	Files []string
	// New is the version that is tested.
	New *Target
	// Old is the version to compare with. Nil compares with the recorded answers.
	Old *Target
	// Webhooks limits the run to calls of these webhooks: names, or paths of URLs. Empty means all.
	Webhooks []string
	// Workers is the number of calls in flight. The default is the number of CPUs.
	Workers int
	// Timeout is the time limit of each call. The default is 10 s. With a negative value, there is no limit.
	Timeout time.Duration
	// KeyFile is the file with the key of the recorder's pseudonyms. SecretPaths must be the same as for the recorder.
	KeyFile     string
	SecretPaths []string
	// Progress is called after each call, with the number of calls so far. It may be nil.
	Progress func(calls int)
}

// Run replays the calls of the files, and reports them in their order. Except for the latencies, the report depends only on
// the files and the answers. Run fails if an option is invalid, if a file cannot be opened, if no call could be read, or if
// ctx ends. A call without an answer is not an error, but a [Failure]. A call is not compared if the secrets in its answer
// cannot be replaced.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.New == nil || len(o.Files) == 0 {
		return nil, errors.New("replay: Options.Files and Options.New are required")
	}
	redaction, err := newRedaction(o.KeyFile, o.SecretPaths)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	files, err := filesOf(o.Files)
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o, redaction: redaction, report: newReport()}
	r.Timeout, r.Workers = cmp.Or(r.Timeout, 10*time.Second), cmp.Or(r.Workers, runtime.GOMAXPROCS(0))
	if err := r.run(ctx, files); err != nil {
		return nil, err
	}
	switch {
	case r.report.Read == 0 && r.report.Excluded > 0:
		return nil, fmt.Errorf("replay: none of the %s is for %s: use the name of a webhook or the path of its URL, as in the recording",
			textutil.Count(r.report.Excluded, "call"), strings.Join(o.Webhooks, ", "))
	case r.report.Read == 0:
		return nil, &UnreadableError{Files: r.report.Files}
	}
	return r.report.finish(), nil
}

// A runner is the state of a run. The goroutine of [Run] reads the calls, and adds their results to the report in the same
// order. Workers replay the calls.
type runner struct {
	Options
	redaction *redaction
	report    *Report
}

// A result is the result of replaying one call.
type result struct {
	place      place
	call       *record.Call
	request    *review.Request
	difference *difference
	skipped    skipped
	hides      bool          // a secret in the answer was not compared
	latency    time.Duration // of the new version
	oldLatency time.Duration // of the old version, or as recorded
}

// A place is the file and the line of a call.
type place struct {
	file string
	line int
}

func (r *runner) run(ctx context.Context, files []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	queue := make(chan func(), r.Workers)
	var workers sync.WaitGroup
	defer workers.Wait() // no call goes on after the end, such as that of a test
	defer cancel(nil)
	defer close(queue)
	for range r.Workers {
		workers.Go(func() {
			for work := range queue {
				work()
			}
		})
	}
	pending := make([]chan *result, 0, 4*r.Workers) // in the order of the files
	drain := func(limit int) error {
		for len(pending) > limit {
			r.add(<-pending[0])
			pending = slices.Delete(pending, 0, 1)
		}
		return context.Cause(ctx)
	}
	for _, name := range files {
		err := r.read(ctx, name, func(at place, call *record.Call) error {
			done := make(chan *result, 1)
			queue <- func() { done <- r.replay(ctx, at, call) }
			pending = append(pending, done)
			return drain(4*r.Workers - 1)
		})
		if err != nil {
			return err
		}
	}
	return drain(0)
}

// replay sends a call to the versions, and compares the answers.
func (r *runner) replay(ctx context.Context, at place, call *record.Call) *result {
	out := &result{place: at, call: call, oldLatency: call.Duration}
	req, err := review.Decode(call.Request)
	if err != nil {
		out.skipped = skipped("the recorded request is invalid: " + err.Error())
		return out
	}
	out.request = req
	var before *answer
	key := call.Key
	if r.Old != nil && key != "" {
		key = r.redaction.keyID // so that the report shows pseudonyms
	}
	if r.Old == nil {
		if r.KeyFile != "" && key != "" && key != r.redaction.keyID {
			out.skipped = "the key file has another key than the recorder had"
			return out
		}
		var reason string
		if before, reason = recorded(req, call); reason != "" {
			out.skipped = skipped(reason)
			return out
		}
	} else if before, out.oldLatency, err = r.answer(ctx, r.Old, req, call, key); err != nil {
		out.skipped = skipped(err.Error())
		return out
	}
	after, took, err := r.answer(ctx, r.New, req, call, key)
	if out.latency = took; err != nil {
		out.skipped = skipped(err.Error())
		return out
	}
	out.difference, out.skipped = compare(req, before, after)
	out.hides = after.hides
	return out
}

// answer sends a call to a version, and returns the answer and the latency. Without an answer, it returns one that has a
// failure. The error is not nil if the secrets in the answer could not be replaced.
func (r *runner) answer(ctx context.Context, t *Target, req *review.Request, call *record.Call, key string) (*answer, time.Duration, error) {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	began := time.Now()
	code, body, err := t.call(ctx, call.Path, call.Request)
	took := time.Since(began)
	if err != nil {
		return &answer{failure: "no answer: " + err.Error()}, took, nil
	}
	a, err := r.redaction.parse(req, call, code, body, key)
	return a, took, err
}

// add adds the result of the next call to the report.
func (r *runner) add(one *result) {
	r.report.add(one)
	if r.Progress != nil {
		r.Progress(r.report.Read)
	}
}
