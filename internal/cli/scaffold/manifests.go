// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/admitkit/admitkit/internal/cli/scratch"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// print writes what the program prints of its hooks, if the file is what it printed before.
func (a *addition) print(ctx context.Context, o *Options) error {
	name, flag := a.project.printed()
	o.tell("building the program, which prints " + name)
	temporary, err := scratch.New("", "admitkit-add-")
	if err != nil {
		return problem.New("%w", err)
	}
	defer temporary.Remove()
	folder := temporary.Path
	before, err := os.ReadFile(a.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.New("%w", err)
	}
	old := before
	if before != nil && a.has(hooksFile) {
		if old, err = a.printedBy(ctx, o, folder, flag); err != nil {
			return a.unprinted(err, name, flag)
		}
	}
	overlay, err := a.overlay(folder)
	if err != nil {
		return problem.New("%w", err)
	}
	text, err := a.printedBy(ctx, o, folder, flag, "-overlay", overlay)
	switch {
	case err != nil:
		return a.unprinted(err, name, flag)
	case before != nil && !bytes.Equal(before, old):
		if !bytes.Equal(before, text) {
			a.notes = append(a.notes, name+" is not what the program printed before, and is left alone: add by hand what go run . "+flag+" prints for the new hooks (make manifests overwrites the file)")
		}
		return nil
	case before != nil && bytes.Equal(before, text):
		return nil
	case before != nil:
		a.before[name] = before
	}
	a.owned[name] = text
	if err := screen.WriteFile(a.path(name), text); err != nil {
		return problem.New("%w", err)
	}
	return nil
}

// overlay writes the file with which the go command sees the new list of hooks before it is there.
func (a *addition) overlay(folder string) (string, error) {
	list := filepath.Join(folder, "hooks.go")
	if err := os.WriteFile(list, a.owned[hooksFile], 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{a.path(hooksFile): list}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// printedBy builds the program and returns what it prints with a flag. A *commandError is the program's.
func (a *addition) printedBy(ctx context.Context, o *Options, folder, flag string, build ...string) ([]byte, error) {
	program := filepath.Join(folder, "program")
	build = append(append([]string{"build"}, build...), "-o", program, ".")
	if _, err := goCommand(ctx, a.root, o.Progress, build...); err != nil {
		if failed := (*commandError)(nil); errors.As(err, &failed) {
			return nil, problem.New("the program does not compile with the new hooks, so nothing was changed:\n%s", lastLines(failed.text, 10)).Hint("go build ./...  # does it without?")
		}
		return nil, err
	}
	run := exec.CommandContext(ctx, program, flag)
	run.Dir = a.root
	return output(ctx, run, nil)
}

// unprinted notes that the program does not print what it should; other errors stay what they are.
func (a *addition) unprinted(err error, name, flag string) error {
	failed := (*commandError)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	a.notes = append(a.notes, "the program has no "+flag+" any more ("+lastLines(failed.text, 1)+"), so "+name+" is as it was")
	return nil
}
