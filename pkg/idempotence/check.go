// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// replayVariable names a file with the one case that Check is to try.
const replayVariable = "ADMITKIT_REPLAY"

// Check tests a subject in a Go test, and fails the test with a report if it breaks a law, or if
// too little could be tried to tell. Cases that fail are stored, see [Store]. The context of the
// test ends the run.
func Check(t testing.TB, subject Subject, opts ...Option) *Report {
	t.Helper()
	ofTest := func(o *options) {
		o.dir, o.command, o.progress = DefaultStore, commandOf(t), func(text string) { t.Helper(); t.Log(text) }
		o.bubble = bubbleOf(t)
	}
	opts = append([]Option{ofTest}, opts...)
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
	path := "."
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasSuffix(info.Path, ".test") {
		path = strings.TrimSuffix(info.Path, ".test")
	}
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return "go test " + path + " -run " + quoted(strings.Join(parts, "/"))
}
