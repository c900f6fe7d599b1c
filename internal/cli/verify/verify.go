// SPDX-License-Identifier: Apache-2.0

// Package verify holds webhooks against the laws of pkg/idempotence, with what a command line says about
// them: URLs, configurations, samples and exceptions in files.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/admitkit/admitkit/internal/cli/page"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// Options are the flags of the command.
type Options struct {
	// URLs are where the webhook is served: several are replicas. In a chain, each is NAME=URL.
	URLs []string
	// Configurations are files with the registration, Webhook which one of several.
	Configurations []string
	Webhook        string
	// Chain are files with configurations of webhooks that are to be tested together.
	Chain []string
	// Hook is a Go package with hooks of admitkit.
	Hook string
	// Files have samples, definitions of custom resources, and namespaces.
	Files []string

	CAFile, ServerName    string
	ClientCert, ClientKey string
	TokenFile             string

	Exceptions    string
	Laws, Without []string
	Observe       string
	Seed          int64
	Objects       int
	Budget        time.Duration

	Server, InProcess bool
	Replay, Store     string
	// Line is the command line, without what tells one run from another.
	Line string
}

// A Result is what a run found out.
type Result struct {
	Report *idempotence.Report
	// Notes are what was chosen where the command line says nothing. They were printed.
	Notes []string

	interrupted error
}

// Run tests what the options name. An error means that it could not be done; it is a problem with hints.
func Run(outer context.Context, s *screen.Screen, o Options) (*Result, error) {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	r := &runner{Options: o, screen: s, result: &Result{}, fail: cancel}
	report, err := r.run(ctx)
	if cause := context.Cause(ctx); cause != nil { // says more than what came of it
		if outer.Err() == nil || !knowsSomething(report) {
			return nil, cause
		}
		r.result.interrupted = cause // what is known by now is not lost
	}
	if err != nil {
		return nil, err
	}
	if report != nil {
		report.Wording = r.wording()
	}
	r.result.Report = report
	return r.result, nil
}

// knowsSomething reports whether there is anything in a report but what was not tried.
func knowsSomething(report *idempotence.Report) bool {
	return report != nil && (len(report.Findings) > 0 || slices.ContainsFunc(report.Laws, func(l idempotence.LawResult) bool { return l.Verdict == idempotence.Passes }))
}

// A runner is one run.
type runner struct {
	Options
	screen *screen.Screen
	result *Result
	// fail ends the run for a reason.
	fail func(error)
}

// note tells the user, and those who read the results, what was chosen.
func (r *runner) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(r.result.Notes, text) {
		r.result.Notes = append(r.result.Notes, text)
		r.screen.Note("%s", text)
	}
}

func (r *runner) run(ctx context.Context) (*idempotence.Report, error) {
	given, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	options, err := r.options(ctx, given)
	if err != nil {
		return nil, err
	}
	hooks, stop, err := r.hooks(ctx, given)
	if err != nil {
		return nil, err
	}
	defer stop()
	subject, err := r.subject(hooks)
	if err != nil {
		return nil, err
	}
	server, disconnect, err := r.engine(ctx)
	if err != nil {
		return nil, err
	}
	defer disconnect()
	progress := r.screen.Progress()
	options.APIServer, options.Progress = server, func(at idempotence.Step) {
		progress.Part(int64(at.Object), int64(at.Objects), "%s %s, %d calls", at.Kind, at.Law, at.Calls)
	}
	report, err := idempotence.Run(ctx, subject, options)
	progress.Done()
	if err != nil {
		if failed := (*idempotence.Error)(nil); errors.As(err, &failed) && failed.Reason.Code == idempotence.ReasonUnknownKinds {
			err = cmp.Or(misnamed(hooks, given), err)
		}
		return nil, explained(err)
	}
	if ctx.Err() == nil {
		r.unused(given, report)
	}
	return report, nil
}

// options returns the options of the run that do not depend on the webhook.
func (r *runner) options(ctx context.Context, given *given) (idempotence.Options, error) {
	var none idempotence.Options
	switch {
	case r.Objects < 1:
		return none, problem.New("--objects %d: at least one object is needed", r.Objects)
	case r.Budget <= 0:
		return none, problem.New("--budget %s: a run needs a positive duration", r.Budget)
	}
	exceptions, err := readExceptions(ctx, r.Exceptions, r.screen.In)
	if err != nil {
		return none, err
	}
	without, err := left(r.Laws, r.Without)
	if err != nil {
		return none, err
	}
	samples, err := given.samplesOf()
	if err != nil {
		return none, err
	}
	options := idempotence.Options{
		Budget: r.Budget, CRDs: given.crds(), Exceptions: exceptions, Namespaces: given.namespaces(), Objects: r.Objects,
		Replay: r.Replay, Samples: samples, Seed: r.Seed, Store: r.Store, Without: without,
	}
	if r.Observe != "" {
		options.Observe = r.observer(ctx)
	}
	return options, nil
}

// left are the laws to leave out.
func left(only, without []string) ([]idempotence.Law, error) {
	var out []idempotence.Law
	for _, name := range slices.Concat(only, without) {
		if !slices.Contains(idempotence.Laws, idempotence.Law(name)) {
			return nil, problem.New("there is no law %q: there are %s", name, lawNames())
		}
	}
	for _, law := range idempotence.Laws {
		if len(only) > 0 && !slices.Contains(only, string(law)) || slices.Contains(without, string(law)) {
			out = append(out, law)
		}
	}
	if len(out) == len(idempotence.Laws) {
		return nil, problem.New("no law is left to test")
	}
	return out, nil
}

// Write writes the results in a form.
func (r *Result) Write(form string, w io.Writer, p screen.Painter) error {
	if form == "text" {
		return r.Report.WriteText(w, p.On)
	}
	with := *r.Report // those who read it do not see what was printed
	with.Notes = nil
	for _, note := range r.Notes {
		with.Notes = append(with.Notes, idempotence.Reason{Code: idempotence.ReasonNote, Detail: note})
	}
	with.Notes = append(with.Notes, r.Report.Notes...)
	switch form {
	case "json":
		return with.WriteJSON(w)
	case "junit":
		return with.WriteJUnit(w)
	case "html":
		return page.FromVerify(&with).Write(w)
	}
	return fmt.Errorf("no form %q", form)
}

// Err is what the exit code is made of: [problem.ErrFound] if a law is broken, another error if it cannot be
// told whether the laws hold, or the run was interrupted, whatever it had found by then.
func (r *Result) Err() error {
	switch {
	case r.interrupted != nil:
		return r.interrupted
	case !r.Report.OK():
		return problem.ErrFound
	case len(r.Report.Incomplete) > 0:
		return undecided(r.Report)
	}
	return nil
}

// explained turns an error of the harness into one of the command line.
func explained(err error) error {
	if errors.Is(err, context.Canceled) || errors.As(err, new(*problem.Error)) {
		return err
	}
	if failed := (*idempotence.Error)(nil); errors.As(err, &failed) {
		return problem.New("%s", failed.Reason.Text(flagHints))
	}
	return problem.New("%w", err)
}
