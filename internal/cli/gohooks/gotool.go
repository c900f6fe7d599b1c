// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/problem"
)

// A target is a package as "go list" describes it.
type target struct {
	Dir, ImportPath, Name string
	GoFiles, CgoFiles     []string
	Module                *struct {
		Path, Dir string
		Main      bool
	}
	Error *struct{ Pos, Err string }

	runDir string // working directory of the go command; paths in its messages are relative to it
}

// nameFolder is the hint of errors about the PACKAGE argument.
const nameFolder = "give the folder with the hooks, such as ./hooks"

// list returns the package pkg: a folder, or an import path that the module of dir can import.
func list(ctx context.Context, dir, pkg string) (*target, error) {
	runDir, pattern, err := where(dir, pkg)
	if err != nil {
		return nil, err
	}
	out, err := goTool(ctx, runDir, nil, "list", "-e", "-find", "-json=Dir,ImportPath,Name,GoFiles,CgoFiles,Module,Error", "--", pattern)
	if err != nil {
		return nil, explain(err, pkg)
	}
	var found []*target
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		t := &target{runDir: runDir}
		if err := decoder.Decode(t); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, problem.New("cannot decode the output of go list: %w", err)
		}
		found = append(found, t)
	}
	switch {
	case len(found) == 0:
		return nil, problem.New("%s matches no Go package", pkg).Hint(nameFolder)
	case len(found) > 1:
		return nil, problem.New("%s matches %d Go packages, and admitkit takes only one", pkg, len(found)).Hint(nameFolder)
	}
	t := found[0]
	return t, t.check(pkg)
}

// Check returns an error if pkg cannot have hooks: it does not exist, is a program, or is in no module. It builds nothing.
func Check(ctx context.Context, dir, pkg string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	_, err = list(ctx, dir, pkg)
	return err
}

// where returns the working directory for the go command, and the package pattern to use there.
func where(dir, pkg string) (runDir, pattern string, err error) {
	folder := pkg
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(dir, folder)
	}
	info, err := os.Stat(folder)
	switch {
	case err == nil && info.IsDir():
		return folder, ".", nil
	case err == nil:
		return "", "", problem.New("%s is a file, not a folder with a Go package", pkg).Hint(nameFolder)
	case filepath.IsAbs(pkg) || strings.HasPrefix(pkg, ".") && !strings.Contains(pkg, "..."):
		return "", "", problem.New("the folder %s does not exist", pkg).Hint(nameFolder)
	case strings.HasPrefix(pkg, "-") || pkg == "":
		return "", "", problem.New("%q is neither a folder nor the import path of a Go package", pkg).Hint(nameFolder)
	}
	return dir, pkg, nil
}

func (t *target) check(pkg string) error {
	switch {
	case t.Error != nil && strings.Contains(t.Error.Err, "no Go files"):
		return problem.New("the folder of %s has no Go files", pkg).Hint(nameFolder)
	case t.Error != nil && t.Error.Pos == "":
		return problem.New("cannot load the Go package %s: %s", pkg, strings.TrimSpace(t.Error.Err))
	case t.Error != nil:
		return problem.New("%s does not compile:\n%s: %s", pkg, t.Error.Pos, strings.TrimSpace(t.Error.Err))
	case t.Module == nil:
		return problem.New("%s %w", pkg, ErrNoModule).Hint("go mod init example.com/NAME")
	case t.Name == "main":
		return problem.New("%s is a program (package main), and Go cannot import a program", pkg).
			Hint("move the hooks to their own package, such as ./hooks, and import it in main")
	}
	return nil
}

// goTool runs the go command and returns its output. If the command fails, the error has its messages. Messages about
// downloads are written to log immediately.
func goTool(ctx context.Context, dir string, log *lines, args ...string) ([]byte, error) {
	return goToolIn(ctx, dir, "", log, args...)
}

// goToolIn is like goTool, but the go command puts its temporary files into the folder temporary. The caller can thus
// remove the files that an interrupted go command leaves behind. If temporary is empty, the go command uses its
// default.
func goToolIn(ctx context.Context, dir, temporary string, log *lines, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if temporary != "" {
		cmd.Env = append(cmd.Environ(), "GOTMPDIR="+temporary)
	}
	var out, messages bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &lines{each: func(line string) {
		messages.WriteString(line + "\n")
		if log != nil && strings.HasPrefix(line, "go: downloading ") {
			log.each(line)
		}
	}}
	ownGroup(cmd)
	cmd.Cancel = func() error { return interrupt(cmd) } // the go command then ends its compilers
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	cmd.Stderr.(*lines).flush()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return nil, problem.New("cannot build the hooks: the go command is not installed, or not in $PATH").Hint("https://go.dev/doc/install")
	}
	return nil, &goError{err: err, messages: strings.TrimSpace(messages.String())}
}

// A goError is a failure of the go command with its messages.
type goError struct {
	err      error
	messages string
}

func (e *goError) Error() string {
	if e.messages == "" {
		return "go: " + e.err.Error()
	}
	return e.messages
}

// ErrNoModule is the error for a package outside of any Go module.
var ErrNoModule = errors.New("is not in a Go module")

var missingModule = regexp.MustCompile(`(no required module provides|cannot find module providing) package github\.com/admitkit/admitkit/`)

// explain turns a failure of the go command into a message for the user.
func explain(err error, pkg string) error {
	var failed *goError
	if !errors.As(err, &failed) {
		return err
	}
	text := failed.messages
	switch {
	case strings.Contains(text, "go.mod file not found"), strings.Contains(text, "cannot find main module"):
		return problem.New("%s %w: there is no go.mod in its folder or a parent folder", pkg, ErrNoModule).Hint("go mod init example.com/NAME")
	case missingModule.MatchString(text):
		return problem.New("the module of %s does not require github.com/admitkit/admitkit", pkg).
			Hint("go mod edit -replace=github.com/admitkit/admitkit=CHECKOUT && go mod tidy  # CHECKOUT is a clone of admitkit, which is not published yet")
	case strings.Contains(text, "missing go.sum entry"), strings.Contains(text, "updates to go.mod needed"):
		return problem.New("the go.mod or go.sum of %s is incomplete:\n%s", pkg, text).Hint("go mod tidy")
	}
	return problem.New("cannot build the hooks of %s:\n%s", pkg, withoutHeaders(text))
}

// withoutHeaders removes the lines that start with "# " and name a package.
func withoutHeaders(messages string) string {
	var all []string
	for line := range strings.Lines(messages) {
		if !strings.HasPrefix(line, "# ") {
			all = append(all, strings.TrimRight(line, "\r\n"))
		}
	}
	return strings.Join(all, "\n")
}

var position = regexp.MustCompile(`^(?:vet: )?([^\s:]+\.go)(:\d+)`)

// relativeTo rewrites the paths in the compiler's messages, which are relative to runDir, to paths relative to dir.
func relativeTo(dir, runDir, messages string) string {
	all := strings.Split(messages, "\n")
	for i, line := range all {
		at := position.FindStringSubmatchIndex(line)
		if at == nil {
			continue
		}
		path := line[at[2]:at[3]]
		if !filepath.IsAbs(path) {
			path = filepath.Join(runDir, path)
		}
		if relative, err := filepath.Rel(dir, path); err == nil {
			all[i] = filepath.ToSlash(relative) + line[at[3]:]
		}
	}
	return strings.Join(all, "\n")
}
