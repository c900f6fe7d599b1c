// SPDX-License-Identifier: Apache-2.0

// Package verifytest checks in a Go test that a mutating webhook is safe to call again. It serves the webhook's handler
// on the loopback interface and runs "admitkit verify", which calls the handler as the API server does.
//
// The package is a module of its own and needs only the standard library of Go. So it does not change the versions of
// controller-runtime and of the Kubernetes libraries in the go.mod of a project. Package idempotence of admitkit runs
// the same checks in process and is faster, but it needs the versions of these libraries that admitkit uses.
package verifytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Options configure a test. The zero value is valid.
type Options struct {
	// Tool is the path of the program admitkit. The default is $ADMITKIT, or else admitkit in $PATH.
	Tool string
	// Path is the path of the webhook, if the handler serves several paths or reads the path. The default is /.
	Path string
	// Args are further flags of "admitkit verify", such as "--objects=20" or "--exceptions=exceptions.yaml".
	Args []string
}

// install says how to get the program. It does not recommend "go get", which would change go.mod.
const install = "install it with\n  go install github.com/admitkit/admitkit/cmd/admitkit@latest\nor set $ADMITKIT to its path"

// Run tests a handler. configuration is the file with its MutatingWebhookConfiguration, such as
// config/webhook/manifests.yaml. samples are files or folders with objects that the webhook changes.
//
// The test fails if a law fails, with the report of verify as its output. It also fails if there is no verdict, because
// the program is missing, the handler does not respond, or it changes too few objects. It is never skipped.
func Run(t testing.TB, handler http.Handler, configuration string, samples ...string) {
	t.Helper()
	Options{}.Run(t, handler, configuration, samples...)
}

// Run is like the function Run, but with options.
func (o Options) Run(t testing.TB, handler http.Handler, configuration string, samples ...string) {
	t.Helper()
	tool, err := o.tool()
	if err != nil {
		t.Error(err)
		return
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	args := []string{"verify", "--url", server.URL + "/" + strings.TrimPrefix(o.Path, "/"), "--webhook-configuration", configuration,
		"--run-again", "go test -run '" + pattern(t.Name()) + "' ."}
	for _, sample := range samples {
		args = append(args, "-f", sample)
	}
	ctx, stop := untilDeadline(t)
	defer stop()
	cmd := exec.CommandContext(ctx, tool, append(args, o.Args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that verify stops what it started
	cmd.WaitDelay = 20 * time.Second
	var report bytes.Buffer
	cmd.Stdout, cmd.Stderr = &report, &report
	err = cmd.Run()
	var exit *exec.ExitError
	switch text := strings.TrimSpace(report.String()); {
	case err == nil:
		t.Log(text)
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		t.Errorf("the webhook is not safe to call again:\n%s", text)
	case ctx.Err() != nil:
		t.Errorf("the deadline of the test ended admitkit verify: raise -timeout, or lower --objects in Options.Args\n%s", text)
	default:
		t.Errorf("admitkit verify has no verdict (%v):\n%s", err, text)
	}
}

// pattern returns a value for the flag -run of "go test" that selects only this test.
func pattern(test string) string {
	levels := strings.Split(test, "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	return strings.Join(levels, "/")
}

// tool returns the path of the program admitkit: o.Tool, or else $ADMITKIT, or else admitkit in $PATH. If the program
// is missing, the error says how to install it.
func (o Options) tool() (string, error) {
	name := o.Tool
	if name == "" {
		name = os.Getenv("ADMITKIT")
	}
	if name == "" {
		name = "admitkit"
	}
	tool, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the program admitkit is missing (%w): %s", err, install)
	}
	return tool, nil
}

// untilDeadline returns a context that ends 30 seconds before the deadline of the test, so that Run can still print the
// report.
func untilDeadline(t testing.TB) (context.Context, context.CancelFunc) {
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := d.Deadline(); ok {
			return context.WithDeadline(context.Background(), deadline.Add(-30*time.Second))
		}
	}
	return context.WithCancel(context.Background())
}
