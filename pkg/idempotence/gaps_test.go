// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	hooks "github.com/admitkit/admitkit/pkg/webhook"
)

// stamped returns a webhook that sets an annotation of new Pods to the result of value.
func stamped(value func() string) Subject {
	registration := admissionregistrationv1.MutatingWebhook{Name: "stamp.example.com", Rules: hooks.Rules(hooks.OnCreate("", "v1", "pods"))}
	return Handler(registration, func() http.Handler {
		return hooks.Mutating(registration, func(_ context.Context, req *hooks.Request[corev1.Pod]) error {
			if req.Object.Annotations == nil {
				req.Object.Annotations = map[string]string{}
			}
			req.Object.Annotations["example.com/stamp"] = value()
			return nil
		})
	})
}

func today() string { return time.Now().Format(time.DateOnly) }

func inBubble(t *testing.T) internals { return internals{bubble: bubbleOf(t)} }

func TestTimeGaps(t *testing.T) {
	dir := t.TempDir()
	report, err := runWith(t.Context(), stamped(today), Options{TimeGaps: DefaultTimeGaps(), Objects: 3, Store: dir}, inBubble(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) != 1 || report.Findings[0].Verdict != Impure || !strings.Contains(report.Findings[0].Summary, "25h0m0s later") {
		t.Fatalf("a date in the object is not found:\n%s", text(report))
	}
	file := report.Findings[0].File
	again, err := runWith(t.Context(), stamped(today), Options{TimeGaps: []time.Duration{400 * 24 * time.Hour}, Replay: file}, inBubble(t))
	if err != nil || len(again.Findings) != 1 {
		t.Errorf("%v, the case alone:\n%s", err, text(again))
	}
	without, err := Run(t.Context(), stamped(today), Options{Replay: file})
	if err != nil || len(without.Findings) != 0 || !strings.Contains(text(without), "the case needs Options.TimeGaps") {
		t.Errorf("%v, the case without time gaps:\n%s", err, text(without))
	}
}

// TestOnlyTheGivenTimeGapsPass tests a webhook that writes the current year. The harness must report it if one of the
// time gaps is a year, and must not if the only gap is a minute.
func TestOnlyTheGivenTimeGapsPass(t *testing.T) {
	year := func() string { return time.Now().Format("2006") }
	for _, gaps := range []struct {
		list  []time.Duration
		found bool
	}{{DefaultTimeGaps(), true}, {[]time.Duration{time.Minute}, false}, {[]time.Duration{time.Minute, 366 * 24 * time.Hour}, true}} {
		report, err := runWith(t.Context(), stamped(year), Options{TimeGaps: gaps.list, Objects: 3}, inBubble(t))
		if err != nil || report.OK() == gaps.found {
			t.Errorf("%v after %v:\n%s", err, gaps.list, text(report))
		}
	}
}

func TestCheckWithTimeGaps(t *testing.T) {
	Check(t, stamped(func() string { return "yes" }), Options{TimeGaps: DefaultTimeGaps(), Objects: 4})
}

func TestTimeGapsThatCannotBe(t *testing.T) {
	url := URL(stamped(today).webhooks[0].MutatingWebhook, nil, "http://localhost:1/")
	for name, c := range map[string]struct {
		subject Subject
		opts    Options
		in      internals
		want    string
	}{
		"not in a test":       {stamped(today), Options{}, internals{}, "needs idempotence.Check"},
		"not in this process": {url, Options{}, inBubble(t), "does not run in this process"},
		"with an API server":  {stamped(today), Options{APIServer: &rest.Config{Host: "https://127.0.0.1:1"}}, inBubble(t), "TimeGaps cannot be combined with APIServer"},
	} {
		c.opts.TimeGaps = DefaultTimeGaps()
		if _, err := runWith(t.Context(), c.subject, c.opts, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
