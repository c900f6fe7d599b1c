// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// Fuzz tests a subject in a fuzz target:
//
//	func FuzzHook(f *testing.F) { idempotence.Fuzz(f, subject, idempotence.Options{}) }
//
// With go test -fuzz '^FuzzHook$', Go's fuzzer looks for objects and edits that reach new code of the webhook. Without
// the flag, Fuzz checks some objects in about a second. Fuzz shrinks and reports a violation as [Check] does. go test
// stores the input and prints the line that runs it again.
//
// If the webhook changes none of the objects, Fuzz searches for its trigger as [Run] does, and fails if it finds none:
// then set Options.Samples. Options.Budget limits each input. Fuzz ignores Objects and Store, and rejects Replay, APIServer and TimeGaps.
func Fuzz(f *testing.F, subject Subject, options Options) {
	f.Helper()
	z, err := newFuzzer(subject, options)
	if err == nil {
		err = z.awake(f.Context())
	}
	if err != nil {
		f.Fatal(asError(ReasonInvalidOptions, err))
	}
	for _, seed := range z.seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		report, err := z.try(t.Context(), input)
		if err != nil {
			t.Fatal(asError(ReasonInvalidOptions, err))
		}
		if !report.OK() {
			t.Error("\n" + report.findings())
		}
	})
}

// A fuzzer generates one object from each input and checks laws on it.
type fuzzer struct {
	opts       options
	subject    Subject
	kinds      []*objects.Kind
	connection *session.Connection
	triggers   map[*objects.Kind]*explore.Trigger // which most generated objects get
}

func newFuzzer(subject Subject, options Options) (*fuzzer, error) {
	z := &fuzzer{opts: newOptions(options, internals{}), connection: &session.Connection{}, triggers: map[*objects.Kind]*explore.Trigger{}}
	z.opts.dir = ""
	var notForFuzz []string
	if options.APIServer != nil {
		notForFuzz = append(notForFuzz, "APIServer")
	}
	if options.Replay != "" {
		notForFuzz = append(notForFuzz, "Replay")
	}
	if len(notForFuzz) > 0 {
		return nil, &Error{Reason: Reason{Code: ReasonNotForFuzz, Names: notForFuzz}}
	}
	var err error
	z.subject, z.kinds, err = z.opts.prepare(subject, z.connection)
	if err == nil && len(z.kinds) == 0 {
		err = &Error{Reason: Reason{Code: ReasonSubresourcesOnly, Names: z.subject.subresourcesOnly()}}
	}
	return z, err
}

// awake tries objects until the webhook changes one. If it changes none, awake searches for its trigger. It returns an
// error if that fails, too, unless Options.AllowInconclusive covers all laws.
func (z *fuzzer) awake(ctx context.Context) error {
	changes, tried, err := z.changesSome(ctx)
	if changes || err != nil {
		return err
	}
	if z.learn(ctx) {
		if changes, _, err = z.changesSome(ctx); changes || err != nil {
			return err
		}
	}
	if _, allowed := z.opts.allows(""); allowed {
		return nil
	}
	return &Error{Reason: Reason{Code: ReasonSamplesNeeded, Kind: z.kinds[0].Name(), Because: []Reason{{Code: ReasonChangedNone, Of: tried}}}}
}

// changesSome tries objects until the webhook changes one. It returns the number of objects if there is none.
func (z *fuzzer) changesSome(ctx context.Context) (changes bool, tried int, err error) {
	for i := range DefaultObjects {
		for n := range z.kinds {
			report, err := z.try(ctx, []byte{changesOnly, byte(i % 3), byte(n), byte(i), byte(i * 7), byte(i * 31)})
			if err != nil {
				return false, 0, err
			}
			if tried += report.Objects; report.Changed > 0 {
				return true, 0, nil
			}
		}
	}
	return false, tried, nil
}

// learn searches for a trigger for each kind. It reports whether it found any. A run of the fuzzer makes the same search
// in each of its processes, with the same result, so an input has the same object in all of them.
func (z *fuzzer) learn(ctx context.Context) (found bool) {
	ctx, cancel := context.WithTimeout(ctx, z.opts.budget)
	defer cancel()
	for _, k := range z.kinds {
		r := newRun(ctx, z.opts, z.subject, k, newReport(z.subject, z.opts), z.connection)
		z.triggers[k] = r.Learn()
		found = found || z.triggers[k] != nil
	}
	return found
}

// changesOnly, as the first byte of an input, selects no law: the input shows only whether the webhook changes the
// object.
const changesOnly = 0xff

// seeds returns the inputs of the seed corpus, for each kind: some check all laws, the others a single law.
func (z *fuzzer) seeds() (all [][]byte) {
	for n := range z.kinds {
		for shape := range 6 {
			all = append(all, []byte{0, byte(shape), byte(n), byte(40 * shape), 128, 200, byte(shape)})
		}
		for i := range Laws {
			all = append(all, []byte{byte(i + 1), 2, byte(n), byte(19 * i)})
		}
	}
	return all
}

// try checks laws on the object that an input describes. The first byte of the input selects the laws (0 means all),
// the second how the object is generated, and the third its kind. The remaining bytes decide the random choices.
func (z *fuzzer) try(ctx context.Context, input []byte) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, z.opts.budget)
	defer cancel()
	s := explore.NewChoices(input, z.opts.seed)
	law, shape, k := s.Next(), s.Next(), z.kinds[int(s.Next())%len(z.kinds)]
	o := z.opts
	if n := int(law) % (len(Laws) + 1); law == changesOnly {
		o.without = Laws
	} else if n > 0 {
		o.without = slices.Concat(o.without, slices.DeleteFunc(slices.Clone(Laws), func(l Law) bool { return l == Laws[n-1] }))
	}
	report := newReport(z.subject, o)
	r := newRun(ctx, o, z.subject, k, report, z.connection)
	r.SwitchOn(z.triggers[k])
	r.One(s, int(shape))
	report.Objects, report.Changed = r.Tally.Objects, r.Tally.Changed
	report.finish(ctx, ctx, o, &session.Connection{})
	switch {
	case z.connection.Failed != nil:
		return nil, failureError(z.connection.Failed)
	case z.connection.Lost != nil:
		return nil, failureError(z.connection.Lost)
	case ctx.Err() != nil && report.OK():
		return nil, &Error{Reason: Reason{Code: ReasonBudgetOfInput, Limit: z.opts.budget}}
	}
	return report, nil
}

// findings returns the text of the findings, without the summary of a whole run.
func (r *Report) findings() string {
	p := printer{report: r}
	for _, v := range r.Findings {
		p.finding(v)
	}
	p.whereToBegin(r)
	return strings.TrimRight(p.text.String(), "\n")
}
