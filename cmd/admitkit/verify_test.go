// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

// TestVerifyIsInterrupted checks that an interrupted run prints one line and exits with 2. It must still write the
// results so far, which say that the run was interrupted.
func TestVerifyIsInterrupted(t *testing.T) {
	for _, row := range []struct {
		name string
		at   int64 // number of the webhook call that interrupts the run
		more []string
		want string // part of the results; "" if there are none
	}{
		{"at the first call", 1, nil, ""},
		{"before any result", 100, nil, ""},
		{"in the middle", 200, nil, "\nFAILS  existing parts (L5)"},
		{"during a slow observe command", 2, []string{"--observe", "exec 3>running; echo begun >&3; sleep 1000"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var calls atomic.Int64
			inner, err := handlerOf("P10 early")
			if err != nil {
				t.Fatal(err)
			}
			server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == row.at && row.more == nil {
					interrupt()
				}
				inner.ServeHTTP(w, r)
			}))
			for file, text := range map[string]string{
				"ca.crt":   string(caOf(server)),
				"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: 'app:v1'}]}\n",
			} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan struct{})
			if row.more == nil {
				close(ended)
			} else {
				interruptedByChild(t, "running", interrupt, ended)
			}
			var out, complaints bytes.Buffer
			s := &screen.Screen{In: strings.NewReader(""), Out: &out, Err: &complaints, Colour: "never", Quiet: true, Getenv: os.Getenv}
			code := run(ctx, s, append([]string{"verify", "--in-process", "-q", "--url", server.URL, "--ca-file", "ca.crt", "-f", "pod.yaml",
				"--store", "cases", "-o", "text", "-o", "junit=report.xml"}, row.more...))
			if code != exitUndecided || !strings.HasSuffix(complaints.String(), "admitkit: interrupted\n") {
				t.Errorf("exit code %d, %s", code, complaints.Bytes())
			}
			left, err := filepath.Glob("*report*")
			if err != nil {
				t.Fatal(err)
			}
			if row.want == "" {
				if out.Len() > 0 || len(left) > 0 {
					t.Errorf("%v is left behind, and printed: %s", left, out.Bytes())
				}
			} else if !strings.Contains("\n"+out.String(), row.want) || !strings.Contains(out.String(), "\ninconclusive: the run was interrupted: ") || !slices.Equal(left, []string{"report.xml"}) {
				t.Errorf("no %q, and in the end %v:\n%s", row.want, left, out.Bytes())
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the observe command is still running")
			}
		})
	}
}

// interruptedByChild calls interrupt when a child process writes to a named pipe. It closes ended when all processes
// that could write to the pipe have ended.
func interruptedByChild(t *testing.T, pipe string, interrupt func(), ended chan struct{}) {
	t.Helper()
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		from, err := os.Open(pipe)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = from.Close() }()
		first := make([]byte, 1)
		_, err = from.Read(first)
		interrupt()
		if _, rest := io.Copy(io.Discard, from); err != nil || rest != nil {
			t.Error(err, rest)
		}
	}()
}
