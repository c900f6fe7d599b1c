// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"

	"github.com/admitkit/admitkit/internal/cli/replay/load"
	"github.com/admitkit/admitkit/internal/cli/screen"
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
	r := &runner{Options: o, screen: s}
	defer r.stop()
	target, err := r.target(ctx, o.URL, o.Hook)
	if err != nil {
		return nil, err
	}
	progress := s.Progress()
	report, err := load.Run(ctx, load.Options{
		Rate: rate, Connections: o.Workers, Duration: o.Duration, Calls: o.calls,
		Send:     func(ctx context.Context, call *record.Call) error { return o.send(ctx, target, call) },
		Progress: func(calls int) { progress.Step("sent %s", textutil.Count(calls, "call")) },
	})
	progress.Done()
	if err != nil {
		return nil, explained(err)
	}
	return &LoadReport{report}, nil
}

// send sends a call. It fails unless the answer has the code 200. A denial is not a failure.
func (o *Options) send(ctx context.Context, target *replay.Target, call *record.Call) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	code, _, err := target.Send(ctx, call)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("HTTP %d", code)
	}
	return err
}

// calls yields the calls of the chosen webhooks.
func (o *Options) calls() iter.Seq2[*record.Call, error] {
	return func(yield func(*record.Call, error) bool) {
		for call, err := range replay.Calls(o.Files...) {
			if err == nil && len(o.Webhooks) > 0 && !slices.Contains(o.Webhooks, call.Webhook) && !slices.Contains(o.Webhooks, call.Path) {
				continue
			}
			if !yield(call, err) {
				return
			}
		}
	}
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
	switch form {
	case "text":
		return r.WriteText(w)
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r.Report)
	}
	return problem.New("-o %s: a load test has the formats text and json", form)
}
