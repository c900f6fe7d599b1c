// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/problem"
)

// goCommand runs the go command and returns what it prints. What it downloads is told.
func goCommand(ctx context.Context, dir string, tell func(string), args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+dir) // a workspace above does not have the project
	return output(ctx, cmd, tell)
}

// output runs a command to its end, or until ctx is done.
func output(ctx context.Context, cmd *exec.Cmd, tell func(string)) ([]byte, error) {
	var out, messages bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = writer(func(p []byte) {
		messages.Write(p)
		if line := strings.TrimSpace(string(p)); tell != nil && strings.HasPrefix(line, "go: downloading ") {
			tell(strings.TrimPrefix(line, "go: "))
		}
	})
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it removes its temporary files then
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return nil, problem.New("the go command is not installed, or not in $PATH").Hint("https://go.dev/doc/install")
	}
	text := strings.TrimSpace(downloads.ReplaceAllString(messages.String(), ""))
	if text == "" {
		text = err.Error()
	}
	return nil, &commandError{text}
}

var downloads = regexp.MustCompile(`(?m)^go: (downloading|finding|found) .*\n`)

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// A commandError is what a command said when it failed.
type commandError struct{ text string }

func (e *commandError) Error() string { return e.text }

// tidy completes go.mod and go.sum.
func tidy(ctx context.Context, dir string, tell func(string)) error {
	_, err := goCommand(ctx, dir, tell, "mod", "tidy")
	var failed *commandError
	if !errors.As(err, &failed) {
		return err
	}
	return problem.New("the modules that the project needs are not complete:\n%s", lastLines(failed.text, 6))
}

func lastLines(text string, n int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
