// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Fuzz tests a subject in a fuzz target:
//
//	func FuzzHook(f *testing.F) { idempotence.Fuzz(f, subject, idempotence.Options{}) }
//
// With go test -fuzz '^FuzzHook$', Go's fuzzer looks for objects and edits that reach new code of the webhook. Without -fuzz, Fuzz checks some
// objects in about a second. A violation is shrunk and reported as [Check] does. go test stores the input and prints the
// line that runs it again. Fuzz fails if the webhook changes none of the objects: give it Samples. Budget applies to one input. Fuzz
// ignores Objects, Replay, Store, TimeGaps and APIServer.
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

// A fuzzer derives one object from bytes and checks laws on it.
type fuzzer struct {
	opts           options
	subject        Subject
	kinds          []*objects.Kind
	transportError *transportError
}

func newFuzzer(subject Subject, options Options) (*fuzzer, error) {
	z := &fuzzer{opts: newOptions(options, internals{}), transportError: &transportError{}}
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
	z.subject, z.kinds, err = z.opts.prepare(subject, z.transportError)
	if err == nil && len(z.kinds) == 0 {
		err = &Error{Reason: Reason{Code: ReasonSubresourcesOnly, Names: z.subject.subresourcesOnly()}}
	}
	return z, err
}

// awake reports whether the webhook changes any object.
func (z *fuzzer) awake(ctx context.Context) error {
	tried := 0
	for i := range DefaultObjects {
		for n := range z.kinds {
			report, err := z.try(ctx, []byte{changesOnly, byte(i % 3), byte(n), byte(i), byte(i * 7), byte(i * 31)})
			if err != nil {
				return err
			}
			if tried += report.Objects; report.Changed > 0 {
				return nil
			}
		}
	}
	if _, allowed := z.opts.allows(""); allowed {
		return nil
	}
	return &Error{Reason: Reason{Code: ReasonSamplesNeeded, Kind: kindName(z.kinds[0].GroupVersionKind), Because: []Reason{{Code: ReasonChangedNone, Of: tried}}}}
}

// changesOnly checks no law, only whether the webhook changes the object.
const changesOnly = 0xff

// seeds returns the first inputs: all laws with some objects, and each law on its own.
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

// try checks laws on one object. The first byte selects the laws (0: all), the second how the object is generated, the third its kind. The
// remaining bytes replace randomness.
func (z *fuzzer) try(ctx context.Context, input []byte) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, z.opts.budget)
	defer cancel()
	s := &choices{input: input, more: rand.NewPCG(uint64(z.opts.seed), 0)}
	law, shape, k := s.next(), s.next(), z.kinds[int(s.next())%len(z.kinds)]
	o := z.opts
	if n := int(law) % (len(Laws) + 1); law == changesOnly {
		o.without = Laws
	} else if n > 0 {
		o.without = slices.Concat(o.without, slices.DeleteFunc(slices.Clone(Laws), func(l Law) bool { return l == Laws[n-1] }))
	}
	report := newReport(z.subject, o)
	r := newRun(ctx, o, z.subject, k, report, z.transportError)
	r.inputs.restrict(&r.opts)
	r.look(rand.New(s), r.inputs.shape(int(shape)))
	report.Objects, report.Changed = r.tally.objects, r.tally.changed
	report.finish(ctx, ctx, o, &transportError{})
	switch {
	case z.transportError.err != nil:
		return nil, z.transportError.err
	case z.transportError.lost != nil:
		return nil, z.transportError.lost
	case ctx.Err() != nil && report.OK():
		return nil, &Error{Reason: Reason{Code: ReasonBudgetOfInput, Limit: z.opts.budget}}
	}
	return report, nil
}

// shape returns the index of an object that is generated in the selected way: an unchanged sample, one with every kind of field, or a random
// one.
func (in *inputs) shape(choice int) (i int) {
	n := max(len(in.samples), 1)
	switch choice % 8 {
	case 0:
		return choice / 8 % n
	case 1:
		return n
	}
	return n + 1 + choice/8
}

// look checks the laws on the i-th object.
func (r *run) look(random *rand.Rand, i int) {
	doc := r.inputs.object(random, i)
	x, ok := r.valid(doc)
	if !ok {
		return
	}
	r.tally.objects++
	out := r.f(r.fresh(), query{object: x})
	if out.ok() && !tree.Equal(out.after.Doc, x.Doc) {
		r.tally.changed++
	}
	if r.one(random, i, x, out, nil); out.ok() && !r.tally.impure {
		r.manifestAgain(doc)
		r.tryLater(random, i, x, out.after)
	}
}

// choices is a source of randomness that a fuzzer controls: two bytes decide a number below 256 or a fraction. After the end of the input all
// values are constant.
type choices struct {
	input []byte
	more  *rand.PCG
}

func (c *choices) next() byte {
	if len(c.input) == 0 {
		return byte(c.more.Uint64())
	}
	b := c.input[0]
	c.input = c.input[1:]
	return b
}

// Uint64 puts one byte where rand.IntN reads it (at the lower end, for powers of two), and another where rand.Float64 reads it.
func (c *choices) Uint64() uint64 {
	n := c.more.Uint64()
	if len(c.input) == 0 {
		return n
	}
	const whole, fraction = 56, 45
	n &^= 0xff<<whole | 0xff<<fraction | 0xff
	b := uint64(c.next())
	return n | b<<whole | b | uint64(c.next())<<fraction
}

// findings returns a report without the statements about a whole run.
func (r *Report) findings() string {
	p := printer{report: r}
	for _, v := range r.Findings {
		p.finding(v)
	}
	p.whereToBegin(r)
	return strings.TrimRight(p.text.String(), "\n")
}
