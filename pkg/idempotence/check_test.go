// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admitkit/admitkit/internal/textutil"
)

// A recorded is a testing.TB that records log lines and errors. It does not fail the test that it wraps.
type recorded struct {
	testing.TB
	logs, errors []string
}

func (r *recorded) Helper() {}

func (r *recorded) Log(args ...any) { r.logs = append(r.logs, fmt.Sprint(args...)) }

func (r *recorded) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorded) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }

// TestReplayLine runs the command line that a report prints for each finding. It must replay the case of that finding,
// and no other.
func TestReplayLine(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	if os.Getenv(replayVariable) != "" {
		Check(t, moody(&broken), Options{})
		return
	}
	outer := &recorded{TB: t}
	Check(outer, moody(&broken), Options{Objects: 2, Store: filepath.Join(t.TempDir(), "it's a folder")})
	if len(outer.errors) != 1 {
		t.Fatalf("Check of a broken webhook: %q", outer.errors)
	}
	found := regexp.MustCompile(`FAILS  [\w ]+\((L\w+)\)\n(?s:.*?)Again:  (.*)\n`).FindAllStringSubmatch(outer.errors[0], -1)
	if len(found) == 0 {
		t.Fatalf("no line to replay in\n%s", outer.errors[0])
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range found {
		law, line := match[1], match[2]
		const command = " go test github.com/admitkit/admitkit/pkg/idempotence -run "
		if !strings.Contains(line, command) {
			t.Fatalf("line %q, want one with %q", line, command)
		}
		// This runs the test binary as go test would, without building it again.
		script := strings.Replace(line, command, " "+textutil.ShellQuote(self)+" -test.run ", 1)
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
		if err == nil || strings.Count(string(out), "FAILS") != 1 || !strings.Contains(string(out), "("+law+")\n") {
			t.Errorf("%s\n%v, want a report on %s only:\n%s", line, err, law, out)
		}
	}
}

// TestAgainLine runs the command in the last line of a report. It must repeat the run with the same seed and number of
// objects.
func TestAgainLine(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	if os.Getenv(seedVariable) != "" {
		Check(t, moody(&broken), Options{Store: NoStore, Seed: 5, Objects: 3})
		return
	}
	outer := &recorded{TB: t}
	Check(outer, moody(&broken), Options{Store: NoStore, Seed: 4711, Objects: 2})
	if len(outer.errors) != 1 {
		t.Fatalf("Check of a broken webhook: %q", outer.errors)
	}
	const command = " go test github.com/admitkit/admitkit/pkg/idempotence -run "
	_, line, _ := strings.Cut(strings.TrimSpace(outer.errors[0]), "this run again: ")
	self, err := os.Executable()
	if err != nil || !strings.HasPrefix(line, "ADMITKIT_SEED=4711 ADMITKIT_OBJECTS=2"+command) {
		t.Fatalf("%v, line %q", err, line)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, command, " "+textutil.ShellQuote(self)+" -test.run ", 1)).CombinedOutput()
	if got := strings.ReplaceAll(string(out), "\n        ", "\n"); err == nil || !strings.Contains(got, strings.TrimSpace(outer.errors[0])) {
		t.Errorf("%s\n%v, want the same report:\n%s\nnot\n%s", line, err, outer.errors[0], got)
	}
	t.Setenv(objectsVariable, "many")
	if _, err := (Options{}).fromEnvironment(); err == nil || !strings.Contains(err.Error(), `ADMITKIT_OBJECTS="many" is not a number`) {
		t.Errorf("error %v", err)
	}
}

func TestCheckReplaysOnlyItsOwnCases(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	t.Setenv(replayVariable, filepath.Join("testdata", "report", "late.json"))
	outer := &recorded{TB: t}
	if report := Check(outer, moody(&broken), Options{}); !report.OK() || len(outer.errors) > 0 || len(outer.logs) != 1 {
		t.Errorf("errors %q, logs %q", outer.errors, outer.logs)
	}
}

func TestCheckLogsProgress(t *testing.T) {
	var broken atomic.Bool
	outer := &recorded{TB: t}
	all := []Law{L1, L3, L4a, L4b, L5, L6, L7, L8, L9, L10, L11, L12}
	Check(outer, moody(&broken), Options{Objects: 200, Without: all})
	if len(outer.errors) > 0 || len(outer.logs) != 3 || !strings.HasPrefix(outer.logs[0], "v1 Pod: 100 of 200 objects, ") {
		t.Errorf("errors %q, logs %q", outer.errors, outer.logs)
	}
}

func TestCommandOf(t *testing.T) {
	t.Run("a (b)/c", func(t *testing.T) {
		const want = `go test github.com/admitkit/admitkit/pkg/idempotence -run '^TestCommandOf$/^a_\(b\)$/^c$'`
		if got := commandOf(t); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
