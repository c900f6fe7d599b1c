// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// command prepares a separate admitkit process with these arguments. It also returns the buffer to which the process
// will write its standard error.
func command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &bytes.Buffer{}
	c := exec.CommandContext(t.Context(), program)
	c.Args = append([]string{"admitkit"}, args...) // testscript selects the program by this name
	c.Stderr = stderr
	return c, stderr
}

// exitCode returns the exit code of a process, or -1 if a signal ended it.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// TestClosedPipe runs commands whose standard output is closed, as "admitkit ... | head" may do. They must print no
// error and keep their exit code.
func TestClosedPipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	err := os.WriteFile(file, []byte(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: shop}
webhooks:
- name: pods.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 30
  clientConfig: {service: {namespace: shop, name: shop}}
  rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		reason string
		args   []string
		want   int
	}{
		{"a list", []string{"lint", "--rules"}, exitOK},
		{"findings still set the exit code", []string{"lint", file}, exitFound},
		{"cobra prints the help", []string{"--help"}, exitOK},
	}
	for _, row := range rows {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c, said := command(t, row.args...)
		c.Stdout = writer
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, c.Run()); code != row.want || said.Len() > 0 {
			t.Errorf("%s: %v: exit code %d, want %d; standard error: %q", row.reason, row.args, code, row.want, said)
		}
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHangup checks that closing the terminal interrupts a command, as Ctrl-C does.
func TestHangup(t *testing.T) {
	// A child process ignores SIGHUP if this process does, for example under nohup, but not if this process handles it.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	c, said := command(t, "lint", "-")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The input is larger than the pipe's buffer. Once Write returns, the command is reading.
	if _, err := in.Write(bytes.Repeat([]byte("# nothing\n"), 50_000)); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, c.Wait()); code != exitUndecided || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("exit code %d, standard error: %q", code, said)
	}
}
