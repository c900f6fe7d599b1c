// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/admitkit/admitkit/internal/textutil"
)

// Variables of the environment that Check heeds more than its options, for the lines that a report prints.
const (
	// replayVariable names a file with the one case that is to be tried.
	replayVariable = "ADMITKIT_REPLAY"
	// seedVariable and objectsVariable make a run again.
	seedVariable    = "ADMITKIT_SEED"
	objectsVariable = "ADMITKIT_OBJECTS"
)

// asked are the options that the environment has.
func asked() (opts []Option, err error) {
	number := func(variable string, option func(n int64) Option) {
		text := os.Getenv(variable)
		if text == "" {
			return
		}
		n, bad := strconv.ParseInt(text, 10, 64)
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("%s=%q is no number", variable, text))
			return
		}
		opts = append(opts, option(n))
	}
	number(seedVariable, Seed)
	number(objectsVariable, func(n int64) Option { return Objects(int(n)) })
	return opts, err
}

// Check tests a subject in a Go test, and fails the test with a report if it breaks a law, or if
// too little could be tried to tell. Cases that fail are stored, see [Store]. The context of the
// test ends the run. ADMITKIT_SEED and ADMITKIT_OBJECTS in the environment count for more than the
// options, so that a run with a random seed can be made again.
func Check(t testing.TB, subject Subject, opts ...Option) *Report {
	t.Helper()
	ofTest := func(o *options) {
		o.dir, o.command, o.progress = DefaultStore, commandOf(t), func(text string) { t.Helper(); t.Log(text) }
		o.bubble = bubbleOf(t)
	}
	of, err := asked()
	if err != nil {
		t.Fatal(err)
	}
	opts = slices.Concat([]Option{ofTest}, opts, of)
	if file := os.Getenv(replayVariable); file != "" {
		stored, err := readCase(file)
		if err != nil {
			t.Fatal(err)
		}
		if names := newReport(subject, options{}).Webhooks; !slices.Equal(stored.Webhooks, names) {
			t.Logf("%s is not a case of %s", file, strings.Join(names, ", "))
			return newReport(subject, options{})
		}
		opts = append(opts, Replay(file))
	}
	report, err := Run(t.Context(), subject, opts...)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	_ = report.WriteText(&text, false)
	if report.OK() && report.Incomplete == "" {
		t.Log("\n" + text.String())
	} else {
		t.Error("\n" + text.String())
	}
	return report
}

// bubbleOf has functions called where time passes at once, or is nil.
func bubbleOf(t testing.TB) func(func(context.Context)) {
	test, ok := t.(*testing.T)
	if !ok {
		return nil
	}
	return func(f func(context.Context)) { synctest.Test(test, func(t *testing.T) { f(t.Context()) }) }
}

// commandOf is the command that runs a test again.
func commandOf(t testing.TB) string {
	path, tags := ".", ""
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasSuffix(info.Path, ".test") {
		path = strings.TrimSuffix(info.Path, ".test")
		for _, s := range info.Settings {
			if s.Key == "-tags" && s.Value != "" {
				tags = "-tags " + textutil.ShellQuote(s.Value) + " "
			}
		}
	}
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return "go test " + tags + path + " -run " + textutil.ShellQuote(strings.Join(parts, "/"))
}
