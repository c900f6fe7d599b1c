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

// goCommand runs the go command and returns its standard output. It passes messages about downloads to progress, which
// may be nil.
func goCommand(ctx context.Context, dir string, progress func(string), args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+dir) // a go.work in a parent folder would not include the project
	return output(ctx, cmd, progress)
}

// output runs a command until it ends or ctx is done, and returns its standard output.
func output(ctx context.Context, cmd *exec.Cmd, progress func(string)) ([]byte, error) {
	var out, messages bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = writer(func(p []byte) {
		messages.Write(p)
		if line := strings.TrimSpace(string(p)); progress != nil && strings.HasPrefix(line, "go: downloading ") {
			progress(strings.TrimPrefix(line, "go: "))
		}
	})
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // not Kill, so that the command removes its temporary files
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

// A commandError is the output of a failed command.
type commandError struct{ text string }

func (e *commandError) Error() string { return e.text }

// tidy runs "go mod tidy".
func tidy(ctx context.Context, dir string, progress func(string)) error {
	_, err := goCommand(ctx, dir, progress, "mod", "tidy")
	var failed *commandError
	if !errors.As(err, &failed) {
		return err
	}
	return problem.New("go mod tidy fails:\n%s", lastLines(failed.text, 6))
}

func lastLines(text string, n int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
