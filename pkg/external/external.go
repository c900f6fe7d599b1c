// SPDX-License-Identifier: Apache-2.0

// Package external lets hooks ask other services, such as a scanner of images. A service can be slow, give wrong
// answers or be gone, and a hook must decide in time nevertheless.
//
// A [Service] keeps answers, lets concurrent calls with the same question share a request, tries again after an error,
// and stops asking for some time if the service does not work. What a failure means for the request is a choice of the
// program: see [Options.OnFailure].
package external

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/internal/counter"
	"github.com/admitkit/admitkit/internal/flight"
)

// Options configure a [Service]. Q is the type of a question, A that of an answer.
type Options[Q, A any] struct {
	// Name is the name of the service for errors and metrics, such as "scanner". It is required.
	Name string
	// Send sends a question to the service and returns the answer. It is required. It must return when ctx ends. An
	// answer that denies something is an answer, not an error. Send gets a copy of the question, decoded from its JSON.
	Send func(ctx context.Context, question Q) (A, error)
	// OnFailure returns the result of [Service.Ask] if there is no answer. It is required, because only the program
	// knows what a failure means. Use [Fail] to let the failurePolicy decide, or [AnswerWith] to go on with an answer.
	OnFailure func(question Q, failure *Failure) (A, error)
	// KeepFor returns how long an answer is kept, such as a long time if it allows and a short time if it denies. Zero
	// and negative mean not at all. Nil means that no answer is kept. Failures are never kept.
	KeepFor func(answer A) time.Duration
	// Size is the largest number of answers that are kept. Zero means 4096, negative none.
	Size int
	// Timeout limits the time for one question, with all attempts and the wait for other questions. Zero means 10 s,
	// negative no limit.
	Timeout time.Duration
	// MaxQuestions is the largest number of questions at a time. Zero means 50, negative no limit. Further questions
	// wait.
	MaxQuestions int
	// Attempts is the largest number of attempts for one question. Zero means 3, negative 1.
	Attempts int
	// Backoff is the time between the first two attempts. Each later pause is longer by a half. A random part of up to
	// a fifth is added. Zero means 100 ms, negative no pause.
	Backoff time.Duration
	// Retry reports whether another attempt may help after this error of Send. Nil means always.
	Retry func(err error) bool
	// OpenAfter is the number of failed questions after which the circuit opens: nothing is asked for the time OpenFor,
	// then one question is tried. An answer resets the number. Questions that are equal count once, so that a single
	// bad question does not open the circuit. Zero means 10, negative that the circuit never opens.
	OpenAfter int
	// OpenFor is how long the circuit stays open. Zero and negative mean 10 s.
	OpenFor time.Duration
	// Outage reports whether an error of Send means that the service does not work. Other errors do not open the circuit.
	// Nil means that each error does. If users can cause an error, let Outage return false for it.
	Outage func(err error) bool
	// Metrics registers the counter admitkit_external_total with the labels service and source. Nil means no metrics.
	// Several Services can share a registerer.
	Metrics prometheus.Registerer
}

// A Service asks another service. It is safe for concurrent use.
type Service[Q, A any] struct {
	options Options[Q, A]
	calls   *flight.Group[A]
	answers *cache.LRUExpireCache // nil if none are kept
	circuit *circuit[A]
	asked   *prometheus.CounterVec
}

// The values of the label source: where the result of a question came from.
const (
	fromCache   = "cache"
	fromService = "service" // a request, perhaps one that several questions shared
	fromCircuit = "circuit" // failed, because the circuit is open
	fromNone    = "failed"
)

// New returns a Service. The error lists required options that are not set, or says that the metrics cannot be
// registered.
func New[Q, A any](o Options[Q, A]) (*Service[Q, A], error) {
	var errs []error
	if o.Name == "" {
		errs = append(errs, errors.New("external: Options.Name is required, such as \"scanner\""))
	}
	if o.Send == nil {
		errs = append(errs, errors.New("external: Options.Send is required"))
	}
	if o.OnFailure == nil {
		errs = append(errs, errors.New("external: Options.OnFailure is required: use Fail or AnswerWith"))
	}
	asked, err := counter.Register(o.Metrics, "admitkit_external_total",
		"Questions of hooks to other services, by service and source of the result (cache, service, circuit that is open, failed).", "service", "source")
	if err != nil {
		errs = append(errs, fmt.Errorf("external: %w", err))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s := &Service[Q, A]{
		options: o, asked: asked, circuit: newCircuit[A](cmp.Or(o.OpenAfter, 10), o.OpenFor, o.Outage),
		calls: flight.New[A](flight.Options{To: o.Name, Sender: "Options.Send", Timeout: o.Timeout, Most: cmp.Or(o.MaxQuestions, 50)}),
	}
	if size := cmp.Or(o.Size, 4096); size > 0 && o.KeepFor != nil {
		s.answers = cache.NewLRUExpireCache(size)
	}
	return s, nil
}

// Ask returns the answer to the question, or the result of [Options.OnFailure]. Other calls may get the same answer, so
// the caller must not change it. Two questions are equal if their JSON is.
//
// If ctx has a deadline, Ask returns before it: a tenth of the time, at most a second, is left for what the hook does
// with a failure.
func (s *Service[Q, A]) Ask(ctx context.Context, question Q) (A, error) {
	answer, source, err := s.ask(ctx, question)
	s.asked.WithLabelValues(s.options.Name, source).Inc()
	if err != nil {
		return s.options.OnFailure(question, &Failure{Service: s.options.Name, Err: err})
	}
	return answer, nil
}

func (s *Service[Q, A]) ask(ctx context.Context, question Q) (answer A, source string, err error) {
	encoded, err := json.Marshal(question)
	if err != nil {
		return answer, fromNone, fmt.Errorf("encoding the question: %w", err)
	}
	key := keyOf(encoded)
	if s.answers != nil {
		if kept, ok := s.answers.Get(key); ok {
			return kept.(A), fromCache, nil
		}
	}
	if s.circuit.isOpen() { // before the wait for other questions
		return answer, fromCircuit, ErrCircuitOpen
	}
	ctx, cancel := early(ctx)
	defer cancel()
	answer, err = s.calls.Do(ctx, string(key[:]), func(ctx context.Context) (A, error) { return s.send(ctx, key, encoded) })
	switch {
	case err == nil:
		return answer, fromService, nil
	case errors.Is(err, ErrCircuitOpen):
		return answer, fromCircuit, err
	case ctx.Err() != nil:
		return answer, fromNone, fmt.Errorf("no answer in time: %w", ctx.Err())
	}
	return answer, fromNone, err
}

// A key identifies a question. It has the same size for long questions.
type key [sha256.Size]byte

func keyOf(encoded []byte) key { return sha256.Sum256(encoded) }

// early returns a context whose deadline is before that of ctx.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-min(time.Until(deadline)/10, time.Second)))
}

// send asks the service unless the circuit is open, and keeps the answer.
func (s *Service[Q, A]) send(ctx context.Context, key key, encoded []byte) (A, error) {
	answer, err := s.circuit.run(key, func() (answer A, err error) {
		var question Q // a copy: the call whose question this is may have ended, and its handler may change the question
		if err := json.Unmarshal(encoded, &question); err != nil {
			return answer, fmt.Errorf("decoding the question: %w", err)
		}
		return s.attempts(ctx, question)
	})
	if err != nil {
		return answer, err
	}
	if s.answers != nil {
		if keep := s.options.KeepFor(answer); keep > 0 {
			s.answers.Add(key, answer, keep)
		}
	}
	return answer, nil
}

// attempts sends the question until there is an answer, or an error after which there is no further attempt.
func (s *Service[Q, A]) attempts(ctx context.Context, question Q) (A, error) {
	pauses := wait.Backoff{Duration: max(cmp.Or(s.options.Backoff, 100*time.Millisecond), 0), Factor: 1.5, Jitter: 0.2, Steps: max(cmp.Or(s.options.Attempts, 3), 1)}
	for {
		answer, err := s.options.Send(ctx, question)
		if err == nil || pauses.Steps == 1 || s.options.Retry != nil && !s.options.Retry(err) {
			return answer, err
		}
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
			return answer, err
		}
	}
}
