// SPDX-License-Identifier: Apache-2.0

// Package verify implements "admitkit verify". It tests webhooks with pkg/idempotence. The flags give the URLs of the
// webhooks, and files with configurations, samples and exceptions.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/page"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// Options are the flags of the command.
type Options struct {
	// URLs are the addresses of the webhook's replicas. In a chain, each has the form NAME=URL.
	URLs []string
	// Configurations are files with webhook configurations. Webhook selects one of several webhooks.
	Configurations []string
	Webhook        string
	// Chain are files with configurations whose webhooks are tested together.
	Chain []string
	// Hook is the Go package of admitkit hooks to build and test.
	Hook string
	// Files have samples, custom resource definitions and namespaces. Traffic are recordings with further samples.
	Files, Traffic []string

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
	// Line is the command line without the flags that differ between runs, such as --seed.
	Line string
	// RunAgain is the command that the report shows for repeating the run. A program that wraps verify sets it. The
	// default is Line with the seed.
	RunAgain string
}

// A Result is the report of a run and the notes printed during it.
type Result struct {
	Report *idempotence.Report
	// Notes describe the choices that verify made because the command line left them open. They were printed.
	Notes []string

	interrupted error
}

// Run tests the webhooks that the options select. It returns an error with hints if it cannot test them.
func Run(outer context.Context, s *screen.Screen, o Options) (*Result, error) {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	r := &runner{Options: o, screen: s, result: &Result{}, fail: cancel}
	report, err := r.run(ctx)
	if cause := context.Cause(ctx); cause != nil { // the cause says more than err
		if outer.Err() == nil || !knowsSomething(report) {
			return nil, cause
		}
		r.result.interrupted = cause // keep the results so far
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

// knowsSomething reports whether a report has a law that passes or fails.
func knowsSomething(report *idempotence.Report) bool {
	return report != nil && (len(report.Findings) > 0 || slices.ContainsFunc(report.Laws, func(l idempotence.LawResult) bool { return l.Verdict == idempotence.Passes }))
}

// A runner is the state of one run.
type runner struct {
	Options
	screen *screen.Screen
	result *Result
	// fail ends the run for a reason.
	fail func(error)
}

// note prints a note and records it for the result.
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
	options, err := r.options(ctx)
	if err != nil {
		return nil, err
	}
	guesses := r.Hook == "" && len(registered(given)) == 0
	if guesses && len(r.URLs) > 0 { // the rules depend on the samples
		if err := r.addTraffic(ctx, given, []target{{urls: r.URLs}}); err != nil {
			return nil, err
		}
	}
	hooks, stop, err := r.hooks(ctx, given)
	if err != nil {
		return nil, err
	}
	defer stop()
	if !guesses {
		if err := r.addTraffic(ctx, given, hooks); err != nil {
			return nil, err
		}
	}
	if options.Samples, err = given.samplesOf(); err != nil {
		return nil, err
	}
	options.CRDs, options.Namespaces = objects.Values(given.CRDs), objects.Values(given.Namespaces)
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
		progress.Part(int64(at.Object), int64(at.Objects), "%s %s, %d calls", at.Kind, at.Law.Title(), at.Calls)
	}
	report, err := idempotence.Run(ctx, subject, options)
	progress.Done()
	if err != nil {
		if failed := (*idempotence.Error)(nil); errors.As(err, &failed) && failed.Reason.Code == idempotence.ReasonUnknownKinds {
			err = cmp.Or(misnamed(hooks, given), err)
		}
		return nil, explained(err)
	}
	r.locate(given, report)
	if ctx.Err() == nil {
		r.unused(given, report)
	}
	return report, nil
}

// options returns the options of the run that depend on neither the webhook nor the objects.
func (r *runner) options(ctx context.Context) (idempotence.Options, error) {
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
	without, err := excludedLaws(r.Laws, r.Without)
	if err != nil {
		return none, err
	}
	options := idempotence.Options{
		Budget: r.Budget, Exceptions: exceptions, Objects: r.Objects, Replay: r.Replay, Seed: r.Seed, Store: r.Store, Without: without,
	}
	if r.Observe != "" {
		options.Observe = r.observer(ctx)
	}
	return options, nil
}

// excludedLaws returns the laws that --law and --without exclude.
func excludedLaws(only, without []string) ([]idempotence.Law, error) {
	var out []idempotence.Law
	for _, name := range slices.Concat(only, without) {
		if !slices.Contains(idempotence.Laws, idempotence.Law(name)) {
			return nil, problem.New("unknown law %q: the laws are %s", name, lawNames())
		}
	}
	for _, law := range idempotence.Laws {
		if len(only) > 0 && !slices.Contains(only, string(law)) || slices.Contains(without, string(law)) {
			out = append(out, law)
		}
	}
	if len(out) == len(idempotence.Laws) {
		return nil, problem.New("--law and --without leave no law to test")
	}
	return out, nil
}

// Write writes the results in an output format: text, json, junit or html.
func (r *Result) Write(form string, w io.Writer, p screen.Painter) error {
	if form == "text" {
		return r.Report.WriteText(w, p.On)
	}
	with := *r.Report // readers of a file have not seen the printed notes
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
	return fmt.Errorf("unknown output format %q", form)
}

// Err returns the error that sets the exit code: [problem.ErrFound] if a law fails, another error if the run was
// interrupted or is inconclusive, and nil if all laws pass.
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

// explained replaces the Go options in an error of package idempotence by the flags of the command.
func explained(err error) error {
	if errors.Is(err, context.Canceled) || errors.As(err, new(*problem.Error)) {
		return err
	}
	if failed := (*idempotence.Error)(nil); errors.As(err, &failed) {
		told := problem.New("%s", failed.Reason.Text(flagHints))
		if failed.Reason.Code == idempotence.ReasonAPIServerFailed && lacksKind(failed.Reason.Detail) {
			return told.Hint("give the definition of the custom resource: -f config/crd/bases")
		}
		return told
	}
	return problem.New("%w", err)
}

// lacksKind reports whether an API server's error says that it does not know the kind of an object.
func lacksKind(message string) bool {
	return strings.Contains(message, "could not find the requested resource") || strings.Contains(message, "no matches for kind")
}
