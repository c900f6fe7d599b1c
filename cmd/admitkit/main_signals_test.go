// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// command is the command line in a process of its own.
func command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	c := exec.CommandContext(t.Context(), program)
	c.Args = append([]string{"admitkit"}, args...) // testscript goes by the name
	c.Stderr = said
	return c, said
}

// exitCode is -1 for a process that a signal ended.
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

// TestClosedPipe: a reader that has enough is no error, and changes no exit code.
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
		{"a list", []string{"lint", "--rules"}, exitHolds},
		{"what was found stays found", []string{"lint", file}, exitFound},
		{"help is printed by the library", []string{"--help"}, exitHolds},
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
			t.Errorf("%s: %v: exit code %d, want %d; it says %q", row.reason, row.args, code, row.want, said)
		}
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHangup: a terminal that is closed ends a command in order, as Ctrl-C does.
func TestHangup(t *testing.T) {
	c, said := command(t, "lint", "-")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: once it is written, the command reads.
	if _, err := in.Write(bytes.Repeat([]byte("# nothing\n"), 50_000)); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, c.Wait()); code != exitCouldNotTell || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("exit code %d, it says %q", code, said)
	}
}
