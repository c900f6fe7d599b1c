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
	"github.com/admitkit/admitkit/internal/problem"
)

// Options configure Build. The zero value builds missing binaries and reports nothing.
type Options struct {
	// Kubernetes is the release to build, as for Choose. If it is not empty, KUBEBUILDER_ASSETS is not used.
	Kubernetes string
	// Force rebuilds binaries that already exist.
	Force bool
	// Also lists further binaries of Kubernetes to build, such as kube-controller-manager.
	Also []string
	// Note receives messages for the user. May be nil.
	Note func(format string, args ...any)
	// Step receives the progress of the build, often. May be nil.
	Step func(format string, args ...any)
}

// Build builds the missing binaries and returns the folder with all of them. If KUBEBUILDER_ASSETS is set, Build
// returns that folder and builds nothing. Concurrent builds wait for each other. An interrupted build keeps the
// binaries that it has finished, and nothing else.
func Build(ctx context.Context, o Options) (string, error) {
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	if o.Step == nil {
		o.Step = func(string, ...any) {}
	}
	if dir := os.Getenv(Assets); dir != "" && o.Kubernetes == "" {
		if _, err := Target(""); err != nil {
			return "", err
		}
		if missing := missingIn(dir, o.Also); len(missing) > 0 {
			return "", incomplete(Candidate{Dir: dir, Missing: missing})
		}
		o.Note("using KUBEBUILDER_ASSETS=%s", dir)
		return dir, nil
	}
	release, err := Choose(o.Kubernetes)
	if err != nil {
		return "", err
	}
	dir, err := release.folder()
	if err != nil {
		return "", err
	}
	wanted := slices.Concat(Binaries, o.Also)
	if !o.Force && len(missingIn(dir, wanted)) == 0 {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", problem.New("cannot store the binaries: %w", err).Hint("export ADMITKIT_CACHE=FOLDER")
	}
	unlock, err := flock.Wait(ctx, filepath.Join(dir, ".lock"), func() { o.Note("waiting for another build of the same binaries") })
	if err != nil {
		return "", problem.New("cannot store the binaries: %w", err).Hint("export ADMITKIT_CACHE=FOLDER")
	}
	defer unlock()
	missing := missingIn(dir, wanted)
	if o.Force {
		missing = wanted
	}
	if len(missing) == 0 { // another build finished while this one waited
		return dir, nil
	}
	return dir, release.build(ctx, dir, missing, o)
}

func (r Release) build(ctx context.Context, dir string, binaries []string, o Options) error {
	if _, err := exec.LookPath("go"); err != nil {
		return problem.New("Go is not installed: it builds kube-apiserver, etcd and kubectl").
			Hint("https://go.dev/dl").Hint("or set KUBEBUILDER_ASSETS to a folder that has them")
	}
	removeUnfinished(dir)
	source, err := os.MkdirTemp("", "admitkit-apiserver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(source)
	if err := r.writeModule(source); err != nil {
		return err
	}
	start := time.Now()
	o.Note("building %s (Kubernetes %s), once: this takes about 5 minutes", strings.Join(binaries, ", "), r.Version())
	for i, binary := range binaries {
		p := &progress{step: o.Step, name: fmt.Sprintf("[%d/%d] %s", i+1, len(binaries), binary), start: time.Now()}
		if err := r.buildOne(ctx, source, dir, binary, p); err != nil {
			return err
		}
	}
	o.Note("built %s in %s: %s", strings.Join(binaries, ", "), time.Since(start).Round(time.Second), dir)
	return nil
}

// buildOne builds one binary under a temporary name and then renames it, so that no half-written binary is visible.
func (r Release) buildOne(ctx context.Context, source, dir, binary string, p *progress) error {
	temporary, err := os.CreateTemp(dir, "."+binary+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if err := temporary.Close(); err != nil {
		return err
	}
	cmd := goCommand(ctx, source, "build", "-mod=readonly", "-v", "-trimpath", "-buildvcs=false", "-ldflags", r.linkerFlags(),
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

// goCommand returns a go command that builds the pinned module for this machine, whatever GOOS and GOARCH say.
// The terminal's Ctrl-C does not reach the command. The end of ctx interrupts it and its children.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	useProcessGroup(cmd)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// removeUnfinished removes the temporary files of builds that were killed. The caller holds the lock.
func removeUnfinished(dir string) {
	for _, binary := range Binaries {
		left, _ := filepath.Glob(filepath.Join(dir, "."+binary+".*")) // a remaining file does no harm
		for _, file := range left {
			os.Remove(file)
		}
	}
}

// progress counts the modules and packages in the output of "go build -v".
type progress struct {
	step                 func(format string, args ...any)
	name                 string
	start                time.Time
	downloaded, compiled int
}

// isPackage reports whether a line of output is the path of a package.
func isPackage(line string) bool {
	return !strings.ContainsFunc(line, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("./_~-", r)
	})
}

// watch runs cmd, counts its progress, and returns the rest of its output.
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
	const maxMessages = 16 << 10 // bytes
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
		return
	case strings.HasPrefix(trimmed, "go: downloading "):
		p.downloaded++
	case isPackage(trimmed):
		p.compiled++
	case messages.Len() < maxMessages:
		messages.WriteString(line)
	}
	p.step("%s: %s, %d modules downloaded, %d packages compiled", p.name, time.Since(p.start).Round(time.Second), p.downloaded, p.compiled)
}
