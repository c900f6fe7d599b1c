// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"slices"

	"github.com/admitkit/admitkit/internal/cli/replay/load"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/lines"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/replay"
)

// A LoadReport is the result of RunLoad.
type LoadReport struct{ *load.Report }

// RunLoad sends the recordings at the rate of the options, and measures the latency.
func RunLoad(ctx context.Context, s *screen.Screen, o Options) (*LoadReport, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	rate, err := load.ParseRate(o.Rate)
	if err != nil {
		return nil, problem.New("--rate=%w", err)
	}
	files, err := lines.Files(o.Files, ".jsonl", ".jsonl.gz")
	if err != nil {
		return nil, problem.New("cannot read the recordings: %w", err)
	}
	r := &runner{Options: o, screen: s}
	defer r.stop()
	target, err := r.target(ctx, o.URL, o.Hook)
	if err != nil {
		return nil, err
	}
	progress := s.Progress()
	report, err := load.Run(ctx, load.Options{
		Rate: rate, Connections: o.Workers, Duration: o.Duration, Calls: r.calls(ctx, files),
		Send:     func(ctx context.Context, call *record.Call) error { return o.send(ctx, target, call) },
		Progress: func(calls int) { progress.Step("sent %s", textutil.Count(calls, "call")) },
	})
	progress.Done()
	if err != nil {
		return nil, explained(err)
	}
	return &LoadReport{report}, nil
}

// send sends a call. It fails unless the HTTP code is one that the API server accepts, 200 to 206. A denial is not a failure.
func (o *Options) send(ctx context.Context, target *replay.Target, call *record.Call) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	code, _, err := target.Send(ctx, call)
	if err == nil && (code < http.StatusOK || code > http.StatusPartialContent) {
		err = fmt.Errorf("HTTP %d", code)
	}
	return err
}

// calls returns the calls of the chosen webhooks in the files, as often as they are asked for. It notes the first time
// what could not be read.
func (r *runner) calls(ctx context.Context, files []string) func() iter.Seq2[*record.Call, error] {
	note := r.screen.Note
	return func() iter.Seq2[*record.Call, error] {
		return func(yield func(*record.Call, error) bool) {
			for _, name := range files {
				if !r.callsOf(ctx, name, note, yield) {
					return
				}
			}
			note = func(string, ...any) {}
		}
	}
}

// callsOf yields the calls of the chosen webhooks in a file. It returns false if the caller has enough, or ctx ends.
func (r *runner) callsOf(ctx context.Context, name string, note func(string, ...any), yield func(*record.Call, error) bool) bool {
	f, err := os.Open(name)
	if err != nil {
		return yield(nil, fmt.Errorf("cannot read the recording: %w", err)) && false
	}
	defer func() { _ = f.Close() }() // only read
	in := record.NewReader(f)
	for call, err := range in.All() {
		var version *record.VersionError
		switch {
		case ctx.Err() != nil:
			return false
		case errors.As(err, &version):
			note("%s: read in part: %v", name, err)
		case err != nil:
			return yield(nil, fmt.Errorf("cannot read %s: %w", name, err)) && false
		case len(r.Webhooks) > 0 && !slices.Contains(r.Webhooks, call.Webhook) && !slices.Contains(r.Webhooks, call.Path):
		case !yield(call, nil):
			return false
		}
	}
	report := in.Report()
	if report.Skipped > 0 {
		note("%s: skipped %s, the first one is line %d: %s", name, textutil.Count(report.Skipped, "line"), report.Examples[0].Line, report.Examples[0].Reason)
	}
	if report.CutOff != nil {
		note("%s: read in part: it is cut off or damaged after line %d: %v", name, report.Lines, report.CutOff)
	}
	return true
}

// Err returns problem.ErrFound if calls failed, and another error if the rate was not reached.
func (r *LoadReport) Err() error {
	switch {
	case r.Failed > 0:
		return problem.ErrFound
	case r.Late():
		return problem.New("the rate %s was not reached", r.Rate).Hint("--connections N, for more connections, or a lower --rate")
	}
	return nil
}

// Write writes the report in a form: text or json.
func (r *LoadReport) Write(form string, w io.Writer, _ screen.Painter) error {
	if form == "text" {
		return r.WriteText(w)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r.Report)
}
