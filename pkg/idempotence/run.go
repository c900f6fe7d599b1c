// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Run tests a subject and returns a report. It fails with an [*Error] only if the subject cannot be tested; failed laws are in
// the report. It makes one call at a time, and the same calls in the same order for the same subject and
// options.
func Run(ctx context.Context, subject Subject, options Options) (*Report, error) {
	return runWith(ctx, subject, options, internals{})
}

func runWith(ctx context.Context, subject Subject, options Options, i internals) (report *Report, err error) {
	o, transportError := newOptions(options, i), &transportError{}
	subject, kinds, err := o.prepare(subject, transportError)
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
	engine, disconnect, err := objects.Connect(o.server, o.crds)
	if err != nil {
		return nil, apiServerFailed(err)
	}
	defer func() { err = errors.Join(err, disconnect()) }()
	if o.unlimited() && len(kinds) > 1 {
		return nil, asError(ReasonInvalidOptions, errors.New("Options.Objects is negative, but the webhook handles several kinds: a run without a limit needs a sample of one kind"))
	}
	o.objects = max(o.objects/len(kinds), min(o.objects, fewestObjects))
	for _, k := range kinds {
		if o.guessesScope(subject, k) {
			report.Notes = append(report.Notes, Reason{Code: ReasonScopeAssumed, Kind: kindName(k.GroupVersionKind)})
		}
		r := newRun(ctx, o, subject, k, report, transportError)
		if engine != nil {
			k.Server = &objects.RealServer{
				Ctx: ctx, Engine: engine, Kind: k, Over: transportError.ends,
				Fail: func(err error) { transportError.err = apiServerFailed(err) },
				Limit: func(text string) {
					report.Notes = addReason(report.Notes, Reason{Code: ReasonAPIServerLimit, Detail: text})
				},
			}
		}
		if r.replay(stored); o.only == "" {
			r.explore()
		}
		report.add(r)
	}
	if transportError.err != nil && ctx.Err() == nil {
		return nil, transportError.err
	}
	report.leftOut(stored, ctx.Err() != nil || transportError.ends())
	report.store(o)
	report.finish(outer, ctx, o, transportError)
	return report, nil
}

// prepare checks the subject and the rivals and returns the kinds of objects to generate.
func (o *options) prepare(subject Subject, t *transportError) (Subject, []*objects.Kind, error) {
	subject, err := subject.checked(t)
	errs := slices.Concat(o.errs, []error{err, o.checkGaps(subject)})
	o.places, err = newPlaces(subject, o.namespaces)
	errs = append(errs, err)
	for i, rival := range o.rivals {
		o.rivals[i], err = rival.checked(t)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || o.only != "" || len(subject.subresourcesOnly()) > 0 {
		return subject, nil, err
	}
	kinds, err := kindsOf(subject, o)
	return subject, kinds, err
}

func newRun(ctx context.Context, o options, subject Subject, k *objects.Kind, report *Report, t *transportError) *run {
	r := &run{ctx: ctx, opts: o, subject: subject, kind: k, report: report, transportError: t, unshared: o.only != "",
		tally: newTally()}
	r.operation, k.Namespace = r.firstOperation(), o.places.own
	r.rivals, r.inputs = r.allRivals(), newInputs(k, o.samples)
	return r
}

// fewestObjects is the least number of objects per kind.
const fewestObjects = 6

// A run tests a subject with objects of one kind.
type run struct {
	ctx            context.Context
	opts           options
	subject        Subject
	kind           *objects.Kind
	operation      admissionv1.Operation // of reinvocations
	rivals         map[string]rival
	inputs         *inputs
	memo           memo
	updated        updated
	reuse          reuse
	clock          stopwatch
	report         *Report
	transportError *transportError

	calls, checks int
	tally         tally
	// plain and other count, for the case that is looked at, the requests that the webhook had its
	// say about: x itself, and what the law makes of it.
	plain, other int

	at       int     // which object that is, from 1
	law      Law     // that is looked at, or ""
	shared   servers // for laws to which any instance is good
	unshared bool    // has each law have its own
}

func (r *run) firstOperation() admissionv1.Operation {
	if r.handles(admissionv1.Create) {
		return admissionv1.Create
	}
	return admissionv1.Update
}

// kindsOf returns the kinds of the samples and definitions, or else the built-in kinds that the rules name.
func kindsOf(subject Subject, o *options) ([]*objects.Kind, error) {
	var kinds []*objects.Kind
	seen := map[schema.GroupVersionKind]bool{}
	add := func(gvk schema.GroupVersionKind) {
		k := o.kindOf(subject, gvk)
		if !seen[gvk] && slices.ContainsFunc(subject.webhooks, func(w *webhook) bool {
			return w.handles(k, admissionv1.Create) || w.handles(k, admissionv1.Update) || w.handles(k, admissionv1.Delete)
		}) {
			seen[gvk], kinds = true, append(kinds, k)
		}
	}
	for _, s := range o.samples {
		gvk, err := gvkOf(s.doc)
		if err != nil {
			return nil, err
		}
		add(gvk)
	}
	for _, gvk := range o.defined.Kinds() {
		add(gvk)
	}
	if len(kinds) > 0 {
		return kinds, nil
	}
	for _, gvk := range usualKinds {
		add(gvk)
	}
	if len(kinds) == 0 {
		return nil, &Error{Reason: Reason{Code: ReasonUnknownKinds}}
	}
	return kinds, nil
}

// usualKinds lists the kinds that webhooks mutate most often: those with a Pod template, and some others.
var usualKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
}

func gvkOf(doc any) (schema.GroupVersionKind, error) {
	fields, _ := doc.(map[string]any)
	apiVersion, _ := fields["apiVersion"].(string)
	kind, _ := fields["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kind == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("a sample has apiVersion %q and kind %q: set its TypeMeta, as only the types of Kubernetes itself are known", apiVersion, kind)
	}
	return gv.WithKind(kind), nil
}

// differences returns the changes from a to b without those that exceptions cover.
func (r *run) differences(law Law, a, b *objects.Object) []tree.Change {
	if string(a.Raw) == string(b.Raw) {
		return nil
	}
	return slices.DeleteFunc(tree.Changes(a.Doc, b.Doc), func(c tree.Change) bool { return r.intended(law, c) })
}

// content returns the differences that are not only another order of elements.
func (r *run) content(law Law, a, b *objects.Object) []tree.Change {
	return slices.DeleteFunc(r.differences(law, a, b), func(c tree.Change) bool { return c.Kind == tree.Moved })
}

// excepted reports whether an exception covers a path.
func (r *run) excepted(law Law, path tree.Path) bool {
	found := false
	for i, e := range r.opts.exceptions {
		if (e.Law == "" || e.Law == law) && path.Matches(e.Path) {
			r.report.needed[i], found = true, true
		}
	}
	return found
}

// over reports whether the run must end.
func (r *run) over() bool { return r.ctx.Err() != nil || r.transportError.ends() }

// asError returns err as an Error, with a code if it has none yet.
func asError(code ReasonCode, err error) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return known
	}
	return &Error{Reason: Reason{Code: code, Detail: err.Error()}, cause: err}
}

// unlimited reports whether the run ends only by its budget.
func (o *options) unlimited() bool { return o.objects == math.MaxInt }
