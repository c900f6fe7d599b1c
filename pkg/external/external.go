// SPDX-License-Identifier: Apache-2.0

// Package external lets hooks ask other services, such as an image scanner. A service can be slow, unreachable or
// broken, and a hook must still decide in time.
//
// A [Service] keeps answers, lets concurrent calls with the same question share a request, tries again after an error,
// and stops asking for some time if the service does not work. The program chooses what a failure means for the
// request: see [Options.OnFailure].
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

// Options configure a [Service]. Q is the type of a question, and A the type of an answer.
type Options[Q, A any] struct {
	// Name is the name of the service in errors and metrics, such as "scanner". It is required.
	Name string
	// Send sends a question to the service and returns the answer. It is required. It must return when ctx ends. If the
	// service denies something, that is an answer, not an error. Send gets a copy of the question, decoded from its
	// JSON.
	Send func(ctx context.Context, question Q) (A, error)
	// OnFailure returns the result of [Service.Ask] if there is no answer. It is required, because only the program
	// knows what a failure means. Use [Fail] to let the failurePolicy decide, or [AnswerWith] to continue with a fixed
	// answer.
	OnFailure func(question Q, failure *Failure) (A, error)
	// KeepFor returns how long an answer is kept, such as a long time if it allows and a short time if it denies. If
	// the duration is zero or negative, the answer is not kept. If KeepFor is nil, no answer is kept. Failures are
	// never kept.
	KeepFor func(answer A) time.Duration
	// Size is the largest number of answers that are kept. Zero means 4096, negative none.
	Size int
	// Timeout limits the time for one question, including all attempts and the wait for other questions. The default is
	// 10 s, and a negative value means no limit.
	Timeout time.Duration
	// MaxQuestions is the largest number of concurrent questions. Zero means 50, negative no limit. Further questions
	// wait.
	MaxQuestions int
	// Attempts is the largest number of attempts for one question. Zero means 3, negative 1.
	Attempts int
	// Backoff is the pause between the first two attempts. Each later pause is 1.5 times as long as the one before. Up
	// to a fifth of the pause is added at random. Zero means 100 ms, negative no pause.
	Backoff time.Duration
	// Retry reports whether another attempt may help after this error of Send. If Retry is nil, every error is retried.
	Retry func(err error) bool
	// OpenAfter is the number of failed questions after which the circuit opens: the service is not asked for the time
	// OpenFor, and then one question is tried. An answer resets the number, and so does an error that is no
	// [Options.Outage]. Equal questions count once, so that a single bad question does not open the circuit. Zero means
	// 10. If it is negative, the circuit never opens.
	OpenAfter int
	// OpenFor is how long the circuit stays open. Zero or a negative duration means 10 s.
	OpenFor time.Duration
	// Outage reports whether an error of Send means that the service does not work. Other errors do not open the
	// circuit. If Outage is nil, every error counts as an outage. Return false for errors that users can cause.
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
	fromService = "service" // a request, which several equal questions may have shared
	fromCircuit = "circuit" // not asked, because the circuit is open
	fromNone    = "failed"  // no answer for any other reason
)

// New returns a Service. The error lists the required options that are not set, and an error of the registration of the
// metrics.
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
		"Questions of hooks to other services, by service and source of the result (cache, service, circuit, failed).", "service", "source")
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
// the caller must not change it. Two questions are equal if their JSON is equal.
//
// If ctx has a deadline, Ask returns before it: a tenth of the time, at most a second, is left for the hook to handle a
// failure.
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

// A key identifies a question. Its size does not depend on the question.
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
		var question Q // a copy: the call that asked may have ended, and its handler may change the question
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

// attempts sends the question until there is an answer, or an error that is not retried.
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
