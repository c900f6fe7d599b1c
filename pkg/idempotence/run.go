// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// Run tests a subject and returns a report. It fails with an [*Error] only if the subject cannot be tested; failed laws
// are in the report. It makes one call at a time. For the same subject and options, it makes the same calls in the same
// order.
func Run(ctx context.Context, subject Subject, options Options) (*Report, error) {
	return runWith(ctx, subject, options, internals{})
}

// runWith is Run with settings that have no public option.
func runWith(ctx context.Context, subject Subject, options Options, i internals) (report *Report, err error) {
	connection := &session.Connection{}
	connection.Loop(func() { report, err = runOn(ctx, connection, subject, newOptions(options, i)) })
	return report, err
}

func runOn(ctx context.Context, connection *session.Connection, subject Subject, o options) (report *Report, err error) {
	subject, kinds, err := o.prepare(subject, connection)
	if err != nil {
		return nil, asError(ReasonInvalidOptions, err)
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, o.budget)
	defer cancel()
	report = newReport(subject, o)
	if names := subject.subresourcesOnly(); len(names) > 0 {
		report.Incomplete = []Reason{{Code: ReasonSubresourcesOnly, Names: names}}
		return report, nil
	}
	stored, err := report.storedCases(o)
	if err != nil {
		return nil, asError(ReasonBadStoredCase, err)
	}
	if o.only != "" {
		kinds = []*objects.Kind{o.kindOf(subject, stored[0].Case.Kind)}
	}
	if names := subject.untried(kinds); len(names) > 0 && o.only == "" {
		report.Notes = append(report.Notes, Reason{Code: ReasonKindsNotTried, Names: names})
	}
	engine, disconnect, err := objects.Connect(o.server, o.crds)
	if err != nil {
		return nil, failureError(&session.Failure{Code: session.APIServerFailed, Err: err})
	}
	defer func() { err = errors.Join(err, disconnect()) }()
	if o.unlimited() && len(kinds) > 1 {
		return nil, asError(ReasonInvalidOptions, errors.New("Options.Objects is negative, but the webhook handles several kinds: a run without a limit needs a sample of one kind"))
	}
	o.objects = max(o.objects/len(kinds), min(o.objects, fewestObjects))
	for _, k := range kinds {
		if o.guessesScope(subject, k) {
			report.Notes = append(report.Notes, Reason{Code: ReasonScopeAssumed, Kind: k.Name()})
		}
		r := newRun(ctx, o, subject, k, report, connection)
		if engine != nil {
			k.Server = &objects.RealServer{
				Ctx: ctx, Engine: engine, Kind: k, Over: connection.Ended,
				Fail: func(err error) { connection.Failed = &session.Failure{Code: session.APIServerFailed, Err: err} },
				Limit: func(text string) {
					report.Notes = addReason(report.Notes, Reason{Code: ReasonAPIServerLimit, Detail: text})
				},
			}
		}
		if r.replay(stored); o.only == "" {
			r.All()
		}
		report.add(r)
	}
	if connection.Failed != nil && ctx.Err() == nil {
		return nil, failureError(connection.Failed)
	}
	report.leftOut(stored, ctx.Err() != nil || connection.Ended())
	report.store(o)
	report.finish(outer, ctx, o, connection)
	return report, nil
}

// failureError converts a failure that ended a run to an error.
func failureError(f *session.Failure) *Error {
	return &Error{Reason: Reason{Code: ReasonCode(f.Code), URL: f.URL, Detail: f.Err.Error()}, cause: f.Err}
}

// prepare validates the options, the subject and the rivals. It returns a prepared copy of the subject, and the kinds
// of objects to generate.
func (o *options) prepare(subject Subject, connection *session.Connection) (Subject, []*objects.Kind, error) {
	subject, err := subject.prepare(connection)
	errs := slices.Concat(o.errs, []error{err, o.checkGaps(subject)})
	o.known, err = session.NewNamespaces(subject.webhooks, o.namespaces)
	errs = append(errs, err)
	for i, rival := range o.rivals {
		o.rivals[i], err = rival.prepare(connection)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || o.only != "" || len(subject.subresourcesOnly()) > 0 {
		return subject, nil, err
	}
	kinds, err := kindsOf(subject, o)
	return subject, kinds, err
}

// fewestObjects is the minimum number of objects for each kind, unless Options.Objects is lower.
const fewestObjects = 6

// A run tests a subject with objects of one kind.
type run struct {
	*explore.Run
	opts   options
	report *Report
}

func newRun(ctx context.Context, o options, subject Subject, k *objects.Kind, report *Report, connection *session.Connection) *run {
	r := &run{opts: o, report: report}
	settings := explore.Settings{
		Objects: o.objects, Seed: o.seed, Unused: o.unused, FirstKind: len(report.Kinds) == 0, Log: o.progress,
		Found: func(f *laws.Finding) { r.add(violation(r.Checker, f)) },
	}
	for _, law := range o.without {
		settings.Without = append(settings.Without, laws.Law(law))
	}
	checks := laws.Options{Observe: o.observe, Gaps: o.gaps, Bubble: o.bubble, Rivals: o.rivalsOf(subject)}
	for _, e := range o.exceptions {
		checks.Exceptions = append(checks.Exceptions, laws.Exception{Path: e.Path, Law: laws.Law(e.Law)})
	}
	if o.step != nil {
		checks.Step = r.reportStep
	}
	r.Run = explore.New(session.New(ctx, k, subject.webhooks, o.known, connection), checks, explore.NewInputs(k, o.samples), settings)
	r.Unshared = o.only != ""
	return r
}

// rivalsOf returns the declared rivals, the other webhooks of the subject, and simulated rivals that behave like common
// webhooks.
func (o *options) rivalsOf(subject Subject) laws.Rivals {
	rivals := laws.Rivals{}
	if !o.unused[explore.DeclaredRivals] {
		var declared [][]*session.Webhook
		for _, s := range o.rivals {
			declared = append(declared, s.webhooks)
		}
		rivals.AddWebhooks(declared, subject.webhooks)
	}
	if !o.unused[explore.CommonRivals] {
		rivals.AddCommon()
	}
	return rivals
}

// add adds a finding to the report. A violation replaces advice that says the same.
func (r *run) add(v *Violation) {
	if v.Verdict != Advice {
		r.report.Findings = slices.DeleteFunc(r.report.Findings, func(known *Violation) bool {
			return known.Verdict == Advice && known.Law == v.Law && known.Kind == v.Kind && known.Summary == v.Summary
		})
	}
	r.report.Findings = append(r.report.Findings, v)
	if r.opts.found != nil {
		r.opts.found(v)
	}
}

// reportStep calls Options.Progress for the check that begins.
func (r *run) reportStep(law laws.Law) {
	r.opts.step(Step{Kind: r.Kind.Name(), Law: Law(law), Object: r.Object(), Objects: r.Objects, Checks: r.Checks, Calls: r.Calls()})
}

// asError returns the [*Error] in err, or a new one with the code.
func asError(code ReasonCode, err error) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return known
	}
	return &Error{Reason: Reason{Code: code, Detail: err.Error()}, cause: err}
}

// unlimited reports whether the number of objects is unlimited, so that only the budget or the context ends the run.
func (o *options) unlimited() bool { return o.objects == math.MaxInt }
