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
	"strings"

	"github.com/admitkit/admitkit/internal/cli/scratch"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/genblock"
	"github.com/admitkit/admitkit/internal/problem"
)

// updateManifests replaces the generated blocks of the manifests by the output of the program with the new hooks. If
// the user has edited a block, it adds a note instead.
func (a *addition) updateManifests(ctx context.Context, o *Options) error {
	o.reportProgress("building the program to generate manifests")
	temporary, err := scratch.New("", "admitkit-add-")
	if err != nil {
		return problem.New("%w", err)
	}
	defer temporary.Remove()
	before := ""
	if a.has(hooksFile) {
		if before, err = a.build(ctx, o, filepath.Join(temporary.Path, "before")); err != nil {
			return err
		}
	}
	overlay, err := a.overlay(temporary.Path)
	if err != nil {
		return problem.New("%w", err)
	}
	now, err := a.build(ctx, o, filepath.Join(temporary.Path, "now"), "-overlay", overlay)
	if err != nil {
		return err
	}
	for _, m := range a.project.Manifests() {
		if err := a.updateManifest(ctx, m, before, now); err != nil {
			return err
		}
	}
	return nil
}

// updateManifest replaces the generated block of one manifest. before is the path of the program without the new hooks,
// and now the path of the program with them.
func (a *addition) updateManifest(ctx context.Context, m Manifest, before, now string) error {
	file, err := os.ReadFile(a.path(m.File))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.New("%w", err)
	}
	text, err := a.printedBy(ctx, now, m)
	if err != nil {
		return a.noteFailure(err, m)
	}
	replaced, err := genblock.Replace(file, text)
	edited := err != nil
	if block, ok := genblock.Find(file); ok && before != "" {
		old, err := a.printedBy(ctx, before, m)
		if err != nil {
			return a.noteFailure(err, m)
		}
		edited = !bytes.Equal(block, old) && !bytes.Equal(block, text)
	}
	switch {
	case edited:
		a.notes = append(a.notes, "you have edited the generated block of "+m.File+", so it was not changed: add the output of go run . "+
			strings.Join(m.Args, " ")+" for the new hooks (make manifests would overwrite the block)")
		return nil
	case bytes.Equal(file, replaced):
		return nil
	case file != nil:
		a.before[m.File] = file
	}
	a.owned[m.File] = replaced
	if err := screen.WriteFile(a.path(m.File), replaced); err != nil {
		return problem.New("%w", err)
	}
	return nil
}

// overlay writes an overlay file for the go command. With this file, the go command uses the new list of hooks before
// Add writes the list into the project.
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

// build builds the program into a file, and returns its path.
func (a *addition) build(ctx context.Context, o *Options, file string, flags ...string) (string, error) {
	_, err := goCommand(ctx, a.root, o.Progress, append(append([]string{"build"}, flags...), "-o", file, ".")...)
	if failed := (*commandError)(nil); errors.As(err, &failed) {
		return "", problem.New("the program does not compile with the new hooks, so nothing was changed:\n%s", lastLines(failed.text, 10)).Hint("go build ./...  # checks the program without them")
	}
	return file, err
}

// printedBy returns the output of a program for a manifest. The error is a *commandError if the program fails.
func (a *addition) printedBy(ctx context.Context, program string, m Manifest) ([]byte, error) {
	run := exec.CommandContext(ctx, program, m.Args...)
	run.Dir = a.root
	return output(ctx, run, nil)
}

// noteFailure adds a note if the program itself failed. It returns other errors.
func (a *addition) noteFailure(err error, m Manifest) error {
	failed := (*commandError)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	a.notes = append(a.notes, "the program failed with "+strings.Join(m.Args, " ")+" ("+lastLines(failed.text, 1)+"), so "+m.File+" was not changed")
	return nil
}
