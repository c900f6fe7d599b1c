// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"cmp"
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

// Environment variables that override options of Check. The command lines in a report set them.
const (
	// replayVariable names the file of a stored case. Check then checks only this case.
	replayVariable = "ADMITKIT_REPLAY"
	// seedVariable and objectsVariable have the seed and the number of objects of a run to repeat.
	seedVariable    = "ADMITKIT_SEED"
	objectsVariable = "ADMITKIT_OBJECTS"
)

// fromEnvironment returns the options, with the seed and the number of objects from the environment variables that are
// set. It fails if a value is not a number.
func (o Options) fromEnvironment() (Options, error) {
	number := func(variable string, byDefault int64) (int64, error) {
		text := os.Getenv(variable)
		if text == "" {
			return byDefault, nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s=%q is not a number", variable, text)
		}
		return n, nil
	}
	seed, err := number(seedVariable, o.Seed)
	objects, other := number(objectsVariable, int64(o.Objects))
	o.Seed, o.Objects = seed, int(objects)
	return o, errors.Join(err, other)
}

// Check tests a subject in a Go test and returns the report. It fails the test with the report if a law fails or is
// inconclusive, or if the run is incomplete. It stores failing cases, see Options.Store. The run ends with the test's
// context.
//
// The environment variables ADMITKIT_SEED and ADMITKIT_OBJECTS override the options, to repeat a run. ADMITKIT_REPLAY
// names the file of a stored case, and Check then checks only this case.
func Check(t testing.TB, subject Subject, options Options) *Report {
	t.Helper()
	ofTest := internals{bubble: bubbleOf(t), progress: func(text string) { t.Helper(); t.Log(text) }}
	options, err := options.fromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	options.Store = cmp.Or(options.Store, DefaultStore)
	if file := os.Getenv(replayVariable); file != "" {
		stored, err := readCase(file)
		if err != nil {
			t.Fatal(err)
		}
		if names := subject.names(); !slices.Equal(stored.Webhooks, names) {
			t.Logf("%s is not a case of %s", file, strings.Join(names, ", "))
			return &Report{Webhooks: names}
		}
		options.Replay = file
	}
	report, err := runWith(t.Context(), subject, options, ofTest)
	if err != nil {
		t.Fatal(err)
	}
	report.Wording = wordingOf(t)
	var text strings.Builder
	_ = report.WriteText(&text, false)
	if report.OK() && len(report.Incomplete) == 0 {
		t.Log("\n" + text.String())
	} else {
		t.Error("\n" + text.String())
	}
	return report
}

// wordingOf returns the wording for the report of a Go test: the command lines that repeat the run and that replay a
// case.
func wordingOf(t testing.TB) Wording {
	command := commandOf(t)
	return Wording{
		RunAgain: func(r *Report) string {
			return fmt.Sprintf("%s=%d %s=%d %s", seedVariable, r.Seed, objectsVariable, r.MaxObjects, command)
		},
		ReplayCase: func(file string) string { return replayVariable + "=" + textutil.ShellQuote(file) + " " + command },
	}
}

// bubbleOf returns a function that runs its argument with a fake clock, in a bubble of package synctest. It returns nil
// if t is not a *testing.T.
func bubbleOf(t testing.TB) func(func(context.Context)) {
	test, ok := t.(*testing.T)
	if !ok {
		return nil
	}
	return func(f func(context.Context)) { synctest.Test(test, func(t *testing.T) { f(t.Context()) }) }
}

// commandOf returns the go test command that runs only the test t.
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
