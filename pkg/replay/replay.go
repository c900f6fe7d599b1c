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
// of a denial; and the object after the patch, whatever the order of its operations. For a hook that did not enforce, the
// decision that it withheld counts. Calls that have no decision in the recording are left out, and so is the patch of a hook
// in the mode Shadow.
//
// The recording has pseudonyms in place of secrets. With the key of the recorder, answers are compared in full. Without it,
// a value that the webhook sets and that counts as a secret, such as that of an environment variable, is not compared.
// A webhook whose decision depends on the value of a secret sees the pseudonym.
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
	// Timeout is that of a call. The default is 10 s, and a negative one is no limit.
	Timeout time.Duration
	// KeyFile is the file with the key of the recorder's pseudonyms, and SecretPaths are those of the recorder.
	KeyFile     string
	SecretPaths []string
	// Progress receives the number of calls so far, often. It may be nil.
	Progress func(calls int)
}

// Run replays the calls of the files in their order. The report depends only on the files and the answers. Run fails if an
// option is invalid, if no call could be read, or if ctx ends. A version that cannot be reached is a failure of each call.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.New == nil || len(o.Files) == 0 {
		return nil, errors.New("replay: Options.Files and Options.New are required")
	}
	cover, err := newCover(o.KeyFile, o.SecretPaths)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	files, err := filesOf(o.Files)
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o, cover: cover, report: newReport()}
	r.Timeout, r.Workers = cmp.Or(r.Timeout, 10*time.Second), cmp.Or(r.Workers, runtime.GOMAXPROCS(0))
	if err := r.run(ctx, files); err != nil {
		return nil, err
	}
	switch {
	case r.report.Read == 0 && r.report.Excluded > 0:
		return nil, fmt.Errorf("replay: none of the %s is one of %s: name a webhook, or the path of its URL, as the recording has it",
			textutil.Count(r.report.Excluded, "call"), strings.Join(o.Webhooks, ", "))
	case r.report.Read == 0:
		return nil, &UnreadableError{Files: r.report.Files}
	}
	return r.report.finish(), nil
}

// A runner is the state of a run. Its goroutine reads calls and adds results in their order, and workers replay them.
type runner struct {
	Options
	cover  *cover
	report *Report
}

// A result is that of one call.
type result struct {
	place      place
	call       *record.Call
	request    *review.Request
	difference *difference
	skipped    skipped
	took       time.Duration
	old        time.Duration
}

// A place is that of a call in the files.
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
	drain := func(most int) error {
		for len(pending) > most {
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
	out := &result{place: at, call: call, old: call.Duration}
	req, err := review.Decode(call.Request)
	if err != nil {
		out.skipped = skipped("the recorded request is invalid: " + err.Error())
		return out
	}
	out.request = req
	var before *answer
	if r.Old == nil {
		var reason string
		if before, reason = recorded(req, call); reason != "" {
			out.skipped = skipped(reason)
			return out
		}
	} else if before, out.old, err = r.answer(ctx, r.Old, req, call, ""); err != nil {
		out.skipped = skipped(err.Error())
		return out
	}
	key := call.Key
	if r.Old != nil {
		key = ""
	}
	after, took, err := r.answer(ctx, r.New, req, call, key)
	if out.took = took; err != nil {
		out.skipped = skipped(err.Error())
		return out
	}
	out.difference, out.skipped = compare(req, before, after)
	return out
}

// answer asks a version. It returns an error if the answer cannot be compared with a recorded one.
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
	a, err := r.cover.parse(req, call, code, body, key)
	return a, took, err
}

// add adds the result of the next call to the report.
func (r *runner) add(one *result) {
	r.report.add(one)
	if r.Progress != nil {
		r.Progress(r.report.Read)
	}
}
