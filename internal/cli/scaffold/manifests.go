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

// updateManifest writes the manifest that the program prints for its hooks. It adds a note instead if the user has edited
// the manifest.
func (a *addition) updateManifest(ctx context.Context, o *Options) error {
	name, flag := a.project.generatedManifest()
	o.reportProgress("building the program to generate " + name)
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
			return a.noteFailure(err, name, flag)
		}
	}
	overlay, err := a.overlay(folder)
	if err != nil {
		return problem.New("%w", err)
	}
	text, err := a.printedBy(ctx, o, folder, flag, "-overlay", overlay)
	switch {
	case err != nil:
		return a.noteFailure(err, name, flag)
	case before != nil && !bytes.Equal(before, old):
		if !bytes.Equal(before, text) {
			a.notes = append(a.notes, "you have edited "+name+", so it was not changed: add the output of go run . "+flag+" for the new hooks (make manifests would overwrite your changes)")
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

// overlay writes an overlay file, with which the go command uses the new list of hooks before it is written.
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

// printedBy builds the program and returns its output with a flag. The error is a *commandError if the program fails.
func (a *addition) printedBy(ctx context.Context, o *Options, folder, flag string, build ...string) ([]byte, error) {
	program := filepath.Join(folder, "program")
	build = append(append([]string{"build"}, build...), "-o", program, ".")
	if _, err := goCommand(ctx, a.root, o.Progress, build...); err != nil {
		if failed := (*commandError)(nil); errors.As(err, &failed) {
			return nil, problem.New("the program does not compile with the new hooks, so nothing was changed:\n%s", lastLines(failed.text, 10)).Hint("go build ./...  # checks the program without them")
		}
		return nil, err
	}
	run := exec.CommandContext(ctx, program, flag)
	run.Dir = a.root
	return output(ctx, run, nil)
}

// noteFailure adds a note if the program itself failed. It returns other errors.
func (a *addition) noteFailure(err error, name, flag string) error {
	failed := (*commandError)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	a.notes = append(a.notes, "the program failed with "+flag+" ("+lastLines(failed.text, 1)+"), so "+name+" was not changed")
	return nil
}
