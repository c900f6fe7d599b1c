// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A question is a marker request and the answer that Wait waits for.
type question struct {
	sort             sort
	stage            stage
	label            string
	want             markerResult
	allowsUnclear    bool // an unclear answer suffices
	allowsUnanswered bool // a failed call of the webhook suffices
}

// A checker finds out what the API server enforces, by marker requests.
type checker struct{ *installation }

// there returns one question for each configuration: whether it has reached the stage or, if it has no hooks, whether
// it is gone. With FailOpenFirst, a configuration without hooks is removed later, so there is no question about it.
func (c checker) there(at stage) []question {
	var list []question
	for n, q := range c.gone() {
		switch w := c.wanted[n]; {
		case w.object != nil:
			list = append(list, question{sort: w.sort, stage: at, label: labelValue(w.sort, w.name, at, w.version), want: enforced})
		case !c.o.FailOpenFirst:
			q.allowsUnclear = true
			list = append(list, q)
		}
	}
	return list
}

// gone returns one question for each configuration: whether no version of it is enforced any more.
func (c checker) gone() []question {
	var list []question
	for _, w := range c.wanted {
		list = append(list, question{sort: w.sort, stage: installed, label: labelValue(w.sort, w.name, installed, ""), want: absent})
	}
	return list
}

// await repeats the questions until the answers were as expected Options.Confirmations times in a row.
func (c checker) await(ctx context.Context, questions []question) error {
	pause, row, last := c.o.Interval, 0, errors.New("no check request was sent yet")
	for {
		seen := c.checkAll(ctx, questions)
		var final *hopelessError
		switch {
		case errors.As(seen, &final):
			return final.error
		case seen == nil:
			if row++; row >= c.o.Confirmations {
				c.status.waits(nil)
				return nil
			}
			pause = c.o.Interval
		case ctx.Err() == nil: // otherwise the error would only report the end of ctx
			if withoutTime(seen) != withoutTime(last) {
				c.logger.Info("waiting", "for", describe(questions), "seen", seen.Error())
			}
			c.status.waits(seen)
			row, last, pause = 0, seen, min(pause*3/2, 20*c.o.Interval)
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("waiting until %s: %w; last seen: %w", describe(questions), context.Cause(ctx), last)
		}
	}
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}

func describe(questions []question) string {
	var parts []string
	for _, q := range questions {
		switch {
		case q.allowsUnclear: // an unclear answer suffices, so the caller cannot rely on it
		case q.want == absent:
			parts = append(parts, fmt.Sprintf("no %s is enforced", kindOf[q.sort]))
		case q.stage == promoted:
			parts = append(parts, fmt.Sprintf("the %s is enforced with its failure policies", kindOf[q.sort]))
		default:
			parts = append(parts, fmt.Sprintf("the %s is enforced", kindOf[q.sort]))
		}
	}
	return strings.Join(parts, " and ")
}

// A hopelessError is an error that waiting cannot resolve.
type hopelessError struct{ error }

// checkAll returns nil if all answers are as expected, and otherwise the reason.
func (c checker) checkAll(ctx context.Context, questions []question) error {
	var errs []error
	for _, q := range questions {
		errs = append(errs, c.checkOne(ctx, q))
	}
	return errors.Join(errs...)
}

func (c checker) checkOne(ctx context.Context, q question) error {
	answer := c.cluster.ask(ctx, q.label)
	if final := hopeless(c.o.namespace(), answer); final != nil {
		return &hopelessError{final}
	}
	kind := fmt.Sprintf("%s %s", kindOf[q.sort], c.o.Configuration.Name)
	switch seen := resultOf(markerName(c.o.Configuration.Name), answer); {
	case seen == q.want || seen == unclear && q.allowsUnclear || seen == unanswered && q.allowsUnanswered:
		return nil
	case errors.Is(answer, errStripped):
		return fmt.Errorf("%s: the check request does not reach its webhook: %w", kind, answer)
	case seen == unclear && !isStatus(answer):
		return fmt.Errorf("%s: cannot ask the API server: %w", kind, answer)
	case seen == unclear:
		return fmt.Errorf("%s: another component refused the check request: %w", kind, answer)
	case q.want == absent:
		return fmt.Errorf("%s is still enforced", kind)
	case seen == absent:
		return fmt.Errorf("the API server does not enforce the new version of %s yet", kind)
	default:
		return fmt.Errorf("%s is enforced, but the API server cannot call the webhook%s: %w", kind, advice(answer), answer)
	}
}

// currentTime matches the time in crypto/x509's error about a certificate that is not valid now.
var currentTime = regexp.MustCompile(`current time \S+`)

// withoutTime returns an error's text without the current time, so that repeated errors compare equal.
func withoutTime(err error) string { return currentTime.ReplaceAllString(err.Error(), "") }

// advice returns the usual cause of a failed webhook call in parentheses, or "" if it knows none.
func advice(answer error) string {
	for _, known := range []struct{ text, cause string }{
		{"x509: certificate has expired or is not yet valid", " (the serving certificate was not renewed, or a clock is wrong)"},
		{"x509:", " (the caBundle does not trust the serving certificate)"},
		{"no hook is served at", " (the server must serve Installer.Hooks)"},
		{"service \"", " (create the Service)"},
		{"connection refused", " (nothing listens there, or no replica is ready)"},
		{"no endpoints available", " (no replica is ready)"},
	} {
		if strings.Contains(answer.Error(), known.text) {
			return known.cause
		}
	}
	return ""
}

var errImpatient = errors.New("timed out")

// bounded returns a child of ctx that ends after patience. If patience is zero, it has no time limit of its own.
func bounded(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if patience == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, patience, errImpatient)
}

func (c checker) awaitFor(ctx context.Context, patience time.Duration, at stage) error {
	ctx, cancel := bounded(ctx, patience)
	defer cancel()
	return c.await(ctx, c.there(at))
}

// known returns the question of whether a configuration has reached a stage. A failed call of the webhook also counts
// as reached, because it shows that the API server has read the configuration.
func (c checker) known(w wanted, at stage) []question {
	for _, q := range c.there(at) {
		if q.sort == w.sort {
			q.allowsUnanswered = true
			return []question{q}
		}
	}
	return nil
}

// settles waits for the expected answers, but not longer than bound. It fails only if ctx ends.
func (c checker) settles(ctx context.Context, bound time.Duration, questions []question) error {
	if deadline, ends := ctx.Deadline(); ends { // leave time for the other configuration
		bound = min(bound, time.Until(deadline)/2)
	}
	within, cancel := bounded(ctx, max(bound, 1))
	defer cancel()
	err := c.await(within, questions)
	if err == nil || ctx.Err() != nil {
		return err
	}
	c.logger.Info("going on without confirmation from the API server", "because", err.Error())
	return nil
}
