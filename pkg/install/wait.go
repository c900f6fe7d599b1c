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

// A question is a marker request and the answer that is waited for.
type question struct {
	sort   sort
	stage  stage
	label  string
	want   sight
	unsure bool // whether an unclear answer will do
	// whether it will do that the API server wants to call the webhook, and cannot
	unserved bool
}

// there asks whether each wanted configuration has come to a stage, and whether the others are
// gone, as far as can be told. With FailOpenFirst those go later than that.
func (i *Installer) there(at stage) []question {
	var list []question
	for n, q := range i.gone() {
		switch w := i.wanted[n]; {
		case w.object != nil:
			list = append(list, question{sort: w.sort, stage: at, label: labelValue(w.sort, w.name, at, w.version), want: enforced})
		case !i.o.FailOpenFirst:
			q.unsure = true
			list = append(list, q)
		}
	}
	return list
}

// gone asks whether no version of the configurations is enforced.
func (i *Installer) gone() []question {
	var list []question
	for _, w := range i.wanted {
		list = append(list, question{sort: w.sort, stage: installed, label: labelValue(w.sort, w.name, installed, ""), want: absent})
	}
	return list
}

// Wait returns when the API server enforces the configurations as [Installer.Apply] or
// [Installer.Promote] stored them: this very version, and its calls arrive at a server with
// these hooks, trusted. Until then it asks with requests that are never stored.
//
// It ends with ctx, and then its error tells what the API server answered last, such as why it
// cannot call the webhook. It returns at once when waiting will not help: without the right to
// ask, or without the namespace.
func (i *Installer) Wait(ctx context.Context) error {
	return i.await(ctx, i.there(applied))
}

// await asks until all answers are as they should be, as often in a row as it takes.
func (i *Installer) await(ctx context.Context, questions []question) error {
	pause, row, last := i.o.Interval, 0, errors.New("nothing was asked yet")
	for {
		seen := i.askAll(ctx, questions)
		var final *hopelessError
		switch {
		case errors.As(seen, &final):
			return final.error
		case seen == nil:
			if row++; row >= i.o.Confirmations {
				i.status.waits(nil)
				return nil
			}
			pause = i.o.Interval
		case ctx.Err() == nil: // or else the error is that of the end
			if withoutTime(seen) != withoutTime(last) {
				i.logger.Info("waiting", "for", describe(questions), "seen", seen.Error())
			}
			i.status.waits(seen)
			row, last, pause = 0, seen, min(pause*3/2, 20*i.o.Interval)
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("waiting until %s: %w; last seen: %w", describe(questions), context.Cause(ctx), last)
		}
	}
}

// sleep returns false when ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

func describe(questions []question) string {
	var parts []string
	for _, q := range questions {
		switch {
		case q.unsure: // a side condition
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

// A hopelessError is one that waiting does not mend.
type hopelessError struct{ error }

// askAll returns nil if all answers are those wanted, or else what is in the way.
func (i *Installer) askAll(ctx context.Context, questions []question) error {
	var errs []error
	for _, q := range questions {
		errs = append(errs, i.askOne(ctx, q))
	}
	return errors.Join(errs...)
}

func (i *Installer) askOne(ctx context.Context, q question) error {
	answer := i.cluster.ask(ctx, q.label)
	if final := hopeless(i.o.namespace(), answer); final != nil {
		return &hopelessError{final}
	}
	kind := fmt.Sprintf("%s %s", kindOf[q.sort], i.o.Configuration.Name)
	switch seen := look(markerName(i.o.Configuration.Name), answer); {
	case seen == q.want || seen == unclear && q.unsure || seen == unanswered && q.unserved:
		return nil
	case errors.Is(answer, errStripped):
		return fmt.Errorf("%s: the question about it does not arrive: %w", kind, answer)
	case seen == unclear && !isStatus(answer):
		return fmt.Errorf("%s: cannot ask the API server: %w", kind, answer)
	case seen == unclear:
		return fmt.Errorf("%s: the question about it was refused by something else: %w", kind, answer)
	case q.want == absent:
		return fmt.Errorf("%s is still enforced", kind)
	case seen == absent:
		return fmt.Errorf("%s is not enforced in this version yet", kind)
	default:
		return fmt.Errorf("%s is enforced, but the API server cannot call the webhook%s: %w", kind, advice(answer), answer)
	}
}

// currentTime is in what crypto/x509 says of a certificate that is not valid now.
var currentTime = regexp.MustCompile(`current time \S+`)

// withoutTime returns what an error says whenever it happens.
func withoutTime(err error) string { return currentTime.ReplaceAllString(err.Error(), "") }

// advice tells what the usual causes of a failed call are.
func advice(answer error) string {
	for _, known := range []struct{ text, cause string }{
		{"x509: certificate has expired or is not yet valid", " (what renews the certificate that is served does not, or a clock is wrong)"},
		{"x509:", " (the caBundle does not vouch for the certificate that is served)"},
		{"no hook is served at", " (the server has to serve Installer.Hooks)"},
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
