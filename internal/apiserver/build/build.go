// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/admitkit/admitkit/internal/apiserver/flock"
	"github.com/admitkit/admitkit/internal/cli/problem"
)

// Options say how to build.
type Options struct {
	// Force builds what is there already.
	Force bool
	// Note takes lines for the user; nil: none.
	Note func(format string, args ...any)
	// Step takes how far it is, often; nil: nobody wants to know.
	Step func(format string, args ...any)
}

// Build builds what is missing, and returns the folder that has the binaries. KUBEBUILDER_ASSETS,
// where it is set, is used as it is. Two builds of the same wait for each other; one that is
// interrupted leaves nothing behind but what it has finished.
func Build(ctx context.Context, o Options) (string, error) {
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	if o.Step == nil {
		o.Step = func(string, ...any) {}
	}
	if dir := os.Getenv(Assets); dir != "" {
		if _, err := Chosen(); err != nil {
			return "", err
		}
		o.Note("using KUBEBUILDER_ASSETS=%s", dir)
		return dir, nil
	}
	dir, err := Folder()
	if err != nil {
		return "", err
	}
	if !o.Force && len(place("cache", dir).Missing) == 0 {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", problem.New("cannot keep what is built: %w", err).Hint("export ADMITKIT_CACHE=FOLDER")
	}
	unlock, err := flock.Wait(ctx, filepath.Join(dir, ".lock"), func() { o.Note("waiting for another build of the same binaries") })
	if err != nil {
		return "", problem.New("cannot keep what is built: %w", err).Hint("export ADMITKIT_CACHE=FOLDER")
	}
	defer unlock()
	missing := place("cache", dir).Missing
	if o.Force {
		missing = Binaries
	}
	if len(missing) == 0 { // the other build did it
		return dir, nil
	}
	return dir, buildAll(ctx, dir, missing, o)
}

func buildAll(ctx context.Context, dir string, binaries []string, o Options) error {
	if _, err := exec.LookPath("go"); err != nil {
		return problem.New("kube-apiserver, etcd and kubectl are built with Go, which is not installed").
			Hint("https://go.dev/dl").Hint("or set KUBEBUILDER_ASSETS to a folder that has them")
	}
	removeUnfinished(dir)
	source, err := os.MkdirTemp("", "admitkit-apiserver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(source)
	if err := writeModule(source); err != nil {
		return err
	}
	start := time.Now()
	o.Note("building %s (Kubernetes %s): about 5 minutes the first time, later runs reuse them", strings.Join(binaries, ", "), Version())
	for i, binary := range binaries {
		p := &progress{step: o.Step, name: fmt.Sprintf("[%d/%d] %s", i+1, len(binaries), binary), start: time.Now()}
		if err := buildOne(ctx, source, dir, binary, p); err != nil {
			return err
		}
	}
	o.Note("built %s in %s: %s", strings.Join(binaries, ", "), time.Since(start).Round(time.Second), dir)
	return nil
}

// buildOne builds one binary beside where it belongs, and then renames it.
func buildOne(ctx context.Context, source, dir, binary string, p *progress) error {
	temporary, err := os.CreateTemp(dir, "."+binary+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if err := temporary.Close(); err != nil {
		return err
	}
	cmd := goCommand(ctx, source, "build", "-mod=readonly", "-v", "-trimpath", "-buildvcs=false", "-ldflags", linkerFlags(),
		"-o", temporary.Name(), packageOf(binary))
	messages, err := p.watch(cmd)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		failed := problem.New("cannot build %s: %w\n%s", binary, err, messages)
		if offline(messages) {
			return failed.Hint("check that this machine reaches the module proxy: go env GOPROXY")
		}
		return failed
	}
	if err := os.Chmod(temporary.Name(), 0o755); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), filepath.Join(dir, binary))
}

// offline reports whether the go command could not reach a proxy.
func offline(messages string) bool {
	return slices.ContainsFunc([]string{"dial tcp", "no such host", "proxyconnect", "module lookup disabled"}, func(sign string) bool {
		return strings.Contains(messages, sign)
	})
}

// goCommand is the go command for the pinned module and this machine, whatever the user builds
// for elsewhere. The terminal's Ctrl-C does not reach it; the end of ctx does, and all its children.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	ownGroup(cmd)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// removeUnfinished removes what builds left behind that were killed. It needs the lock.
func removeUnfinished(dir string) {
	for _, binary := range Binaries {
		left, _ := filepath.Glob(filepath.Join(dir, "."+binary+".*")) // a file that stays does no harm
		for _, file := range left {
			os.Remove(file)
		}
	}
}

// progress counts what go build -v says.
type progress struct {
	step                 func(format string, args ...any)
	name                 string
	start                time.Time
	downloaded, compiled int
}

// isPackage reports whether a line is the path of a package.
func isPackage(line string) bool {
	return !strings.ContainsFunc(line, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("./_~-", r)
	})
}

// watch runs cmd, and returns what it said that is not progress.
func (p *progress) watch(cmd *exec.Cmd) (string, error) {
	var messages bytes.Buffer
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			p.line(line, &messages)
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Run()
	_ = in.Close() // never fails
	<-done
	var exit *exec.ExitError
	if errors.As(err, &exit) && messages.Len() > 0 {
		err = errors.New("go build failed")
	}
	return strings.TrimSpace(messages.String()), err
}

func (p *progress) line(line string, messages *bytes.Buffer) {
	const enough = 16 << 10
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
		return
	case strings.HasPrefix(trimmed, "go: downloading "):
		p.downloaded++
	case isPackage(trimmed):
		p.compiled++
	case messages.Len() < enough:
		messages.WriteString(line)
	}
	p.step("%s: %s, %d modules downloaded, %d packages compiled", p.name, time.Since(p.start).Round(time.Second), p.downloaded, p.compiled)
}
