// SPDX-License-Identifier: Apache-2.0

// Package audit reports the activity of webhooks from audit logs of the API server: events of audit.k8s.io, one per
// line.
//
// It reports only what the log proves. All calls of mutating webhooks are recorded at level Metadata and above, and
// their patches at level Request and above. The log numbers the rounds of calls: round 0 has the first calls for a
// request, and round 1 the reinvocations. For validating webhooks, only denials and failures are recorded. Logs are
// read as a stream in bounded memory.
package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/admitkit/admitkit/internal/lines"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
)

// Progress receives the number of bytes and events read so far. all is the total size in bytes, or 0 if it is unknown.
type Progress func(read, all int64, events int)

// Run reads all sources in order and returns the report. It returns an error if ctx ends, or if the logs have no facts
// about webhooks.
func Run(ctx context.Context, sources []Source, o Options, progress Progress) (*Report, error) {
	r := reader{tally: newTally(o), progress: progress}
	for _, s := range sources {
		r.all += s.Size
	}
	if slices.ContainsFunc(sources, func(s Source) bool { return s.pipe }) {
		r.all = 0
	}
	for _, s := range sources {
		if err := r.source(ctx, s); err != nil {
			return nil, err
		}
	}
	return r.report()
}

// A reader reads logs into a tally.
type reader struct {
	tally      *tally
	progress   Progress
	read       atomic.Int64
	all        int64
	events     int
	finished   int
	files      []File
	incomplete []string
	lost       int // skipped lines that may have been events
	lostOf     []string
	oldFormat  bool // some lines have the format "legacy"
	otherJSON  bool // some lines are other JSON objects
}

// longest is the maximum length of a line in bytes. At level RequestResponse an event has the whole response, which can
// have many megabytes for a list.
const longest = 32 << 20

// mostSkipped is the number of skipped lines of a file that are reported one by one.
const mostSkipped = 3

// source reads a log. It fails only if ctx ends. Parts that cannot be read are reported.
func (r *reader) source(ctx context.Context, s Source) error {
	f := File{Name: s.Name}
	before, lostBefore := r.read.Load(), r.lost
	defer func() {
		f.Bytes = r.read.Load() - before
		if n := r.lost - lostBefore; n > 0 {
			r.lostOf = append(r.lostOf, fmt.Sprintf("%s of %s could not be read and may have been %s", textutil.Count(n, "line"), s.Name, map[bool]string{true: "an event", false: "events"}[n == 1]))
		}
		r.files = append(r.files, f)
	}()
	in, done, err := s.stream(ctx, &r.read)
	if err == nil {
		err = r.lines(ctx, in, &f)
		err = errors.Join(err, done())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.incomplete = append(r.incomplete, fmt.Sprintf("%s was read to line %d only: %v", s.Name, f.Lines, err))
	}
	return nil
}

func (r *reader) lines(ctx context.Context, in *bufio.Reader, f *File) error {
	all := lines.Reader{In: in, Limit: longest}
	for {
		got, err := all.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f.Lines++
		r.line(got, f)
		if f.Lines%256 == 0 || len(got.Text) > lines.Chunk {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.progress(r.read.Load(), r.all, r.events)
		}
	}
}

// line adds the events in one line of a log to the tally.
func (r *reader) line(got lines.Line, f *File) {
	if got.TooLong {
		f.TooLong++
		r.lost++
		f.skip(fmt.Sprintf("longer than %d MiB", longest>>20))
		return
	}
	if len(bytes.TrimSpace(got.Text)) == 0 {
		return
	}
	err := split(got.Text, func(event *raw) {
		f.Events++
		r.events++
		if event.finished() {
			r.finished++
		}
		r.tally.add(event)
	})
	switch {
	case err == nil:
	case !got.Ended && errors.Is(err, errNotJSON):
		f.HalfWritten = true
	default:
		r.otherJSON = r.otherJSON || errors.Is(err, errNotEvent)
		r.oldFormat = r.oldFormat || bytes.Contains(got.Text, []byte(` AUDIT: id="`))
		if !errors.Is(err, errNotEvent) || bytes.Contains(got.Text, []byte("audit.k8s.io")) { // such as an event inside other JSON
			r.lost++
		}
		f.Corrupt++
		f.skip(err.Error())
	}
}

func (f *File) skip(reason string) {
	if len(f.Skipped) < mostSkipped {
		f.Skipped = append(f.Skipped, SkippedLine{f.Lines, reason})
	}
}

// report returns the report, or an error if the logs say nothing about webhooks.
func (r *reader) report() (*Report, error) {
	t := r.tally
	switch {
	case r.events == 0:
		return nil, r.nothing()
	case r.finished == 0:
		return nil, problem.New("%s, but none of the stage ResponseComplete, which records the webhooks", textutil.Count(r.events, "audit event")).
			Hint("remove ResponseComplete from omitStages in the audit policy")
	case t.requests+t.duplicates == 0 && t.outside > 0:
		return nil, problem.New("no request in the selected time: the log has requests from %s to %s", stamp(t.outsideFirst), stamp(t.outsideLast))
	case len(t.options.Webhooks) > 0 && len(t.hooks.rows)+len(t.validating.rows)+len(t.notes.rows) == 0:
		err := problem.New("no record of %s in %s", strings.Join(t.options.Webhooks, ", "), textutil.Count(t.requests, "request"))
		if others := t.others.names; len(others) > 0 {
			return nil, err.Hint("--webhook NAME, with one of %s", strings.Join(others, ", "))
		}
		return nil, err.Hint("the log has no call of a webhook; for validating webhooks, the API server logs only denials and failures")
	}
	report := t.report()
	report.Files, report.Events, report.Incomplete = r.files, r.events, slices.Concat(r.incomplete, r.lostOf)
	return report, nil
}

// nothing returns an error for logs without events.
func (r *reader) nothing() error {
	lines, names := 0, []string{}
	for _, f := range r.files {
		lines += f.Lines
		names = append(names, f.Name)
	}
	err := problem.New("no audit event in %s (%s)", strings.Join(names, ", "), textutil.Count(lines, "line"))
	if len(r.incomplete) > 0 {
		return problem.New("no audit event: %s", strings.Join(r.incomplete, "; ")).Hint("gzip -t FILE  # checks whether a compressed file is complete")
	}
	switch {
	case r.oldFormat:
		return err.Hint("start the API server with --audit-log-format=json")
	case r.otherJSON:
		return err.Hint("if something has wrapped the events, unwrap them: jq -r .message %s | admitkit audit -", strings.Join(names, " "))
	}
	return err.Hint("%s", Policy)
}

// Policy is a hint on how to make the API server write the logs that Run reads.
const Policy = `start the API server with --audit-log-path=audit.log and
--audit-policy-file=policy.yaml, and with this in policy.yaml:
  apiVersion: audit.k8s.io/v1
  kind: Policy
  omitStages: [RequestReceived]
  rules:
  - level: Metadata`

func stamp(at time.Time) string {
	if at.IsZero() {
		return "(no time)"
	}
	return at.Format("2006-01-02T15:04:05Z")
}
