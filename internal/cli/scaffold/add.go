// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// Add adds hooks to the project that contains o.Dir. If it fails, it restores the project.
func Add(ctx context.Context, o Options) (result *Result, err error) {
	p, root, err := Load(cmp.Or(o.Dir, "."))
	if err != nil {
		return nil, err
	}
	if p.Hooks, err = p.hooksOf(o.Mutate, o.Validate); err != nil {
		return nil, err
	}
	a := &addition{tree: tree{root}, project: p, added: files{}, before: files{}}
	if err := a.render(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.rollBack())
		}
	}()
	if err := a.write(); err != nil {
		return nil, err
	}
	if err := a.complete(ctx, &o); err != nil {
		return nil, err
	}
	return &Result{
		Project: p, Dir: root, Hooks: p.Hooks, Created: a.created(), Written: a.written(),
		Notes: append(a.notes, notes(p.Hooks)...),
	}, ctx.Err()
}

// An addition is the state of one call of Add.
type addition struct {
	tree
	project *Project
	added   files    // new files
	owned   files    // derived files, with their new content
	before  files    // previous content of changed files
	folders []string // new folders, parents first
	notes   []string
}

// render generates all files. It fails if a file or function of a new hook already exists.
func (a *addition) render() error {
	crds := a.ownDefinitions()
	for _, h := range a.project.Hooks {
		if err := a.checkFree(h); err != nil {
			return err
		}
		if err := a.added.addKind(h, &a.tree); err != nil {
			return err
		}
		if err := a.added.addHook(h); err != nil {
			return err
		}
	}
	list, err := a.list(a.added)
	if err != nil {
		return err
	}
	a.owned = files{}
	if list != nil {
		a.owned[hooksFile] = list
		if others := a.unlisted(); len(others) > 0 {
			a.notes = append(a.notes, hooksFile+" does not list "+calls(others)+": add the functions that return hooks of their own")
		}
	} else {
		var names []string
		for _, h := range a.project.Hooks {
			names = append(names, h.Constructor())
		}
		a.notes = append(a.notes, "the function Hooks in "+hooksFile+" does not end with a list of hooks, one per line, so it was not changed: add "+
			calls(names)+" to it, then run make manifests")
	}
	all := a.definitions(a.added)
	switch {
	case slices.Equal(all, a.definitions(nil)):
		return nil
	case !crds:
		a.notes = append(a.notes, "you have edited "+definitionsFile+", so it was not changed: add "+strings.Join(all, ", ")+" to it")
		return nil
	}
	return a.owned.add(definitionsFile, "type/kustomization.yaml", all)
}

// calls returns the names as a list of function calls for a message, such as "PodMutator(), PodValidator()".
func calls(names []string) string { return strings.Join(names, "(), ") + "()" }

// ownDefinitions reports whether Add may replace the list of CustomResourceDefinitions: the list is missing, or the
// user has not edited it.
func (a *addition) ownDefinitions() bool {
	text, err := os.ReadFile(a.path(definitionsFile))
	if err != nil {
		return true
	}
	want, err := render("type/kustomization.yaml", a.definitions(nil))
	return err == nil && bytes.Equal(text, want)
}

// checkFree returns an error if a file or function of a new hook already exists.
func (a *addition) checkFree(h *Hook) error {
	for _, name := range []string{"hooks/" + h.File(), "hooks/" + h.TestFile(), "e2e/" + h.TestFile()} {
		if a.has(name) {
			return problem.New("%s already exists: nothing was changed", name).
				Hint("edit the file, or rename it").
				Hint("if an earlier add hook was killed: add the hook to %s and run make manifests, or remove its files and run add hook again", hooksFile)
		}
	}
	for _, folder := range []string{"hooks", "e2e"} {
		for _, f := range a.parse(folder) {
			for _, name := range h.declares() {
				if slices.Contains(declared(f), name) && (folder == "hooks" || name == h.Test()) {
					return problem.New("the package in %s already declares %s, a name of the new hook: nothing was changed", folder, name)
				}
			}
		}
	}
	return nil
}

// write writes the new and derived files, except hooks/hooks.go, and stores the previous content of changed files.
func (a *addition) write() error {
	for _, name := range a.added.names() {
		if err := a.makeFolder(path.Dir(name)); err != nil {
			return err
		}
		if err := os.WriteFile(a.path(name), a.added[name], 0o644); err != nil {
			return problem.New("%w", err)
		}
	}
	for _, name := range append([]string{"go.mod", "go.sum"}, a.owned.names()...) {
		if text, err := os.ReadFile(a.path(name)); err == nil {
			a.before[name] = text
		}
	}
	for _, name := range a.owned.names() {
		if name == hooksFile {
			continue // complete writes it last
		}
		if err := screen.WriteFile(a.path(name), a.owned[name]); err != nil {
			return problem.New("%w", err)
		}
	}
	return nil
}

// makeFolder creates a folder and its missing parents.
func (a *addition) makeFolder(folder string) error {
	if folder == "." || a.has(folder) {
		return nil
	}
	if err := a.makeFolder(path.Dir(folder)); err != nil {
		return err
	}
	if err := os.Mkdir(a.path(folder), 0o755); err != nil {
		return problem.New("%w", err)
	}
	a.folders = append(a.folders, folder)
	return nil
}

// complete updates go.mod, the generated manifests, and finally hooks/hooks.go. If Add is killed before that, the
// program does not have the new hooks yet, and still works.
func (a *addition) complete(ctx context.Context, o *Options) error {
	if !o.SkipTidy {
		o.reportProgress("completing go.mod and go.sum")
		if err := tidy(ctx, a.root, o.Progress); err != nil {
			return err
		}
	}
	if a.owned[hooksFile] == nil {
		return nil // the new hooks are not in the list yet
	}
	if err := a.updateManifests(ctx, o); err != nil {
		return err
	}
	if err := screen.WriteFile(a.path(hooksFile), a.owned[hooksFile]); err != nil {
		return problem.New("%w", err)
	}
	return nil
}

// created returns the new files.
func (a *addition) created() []string {
	all := a.added.names()
	for name := range a.owned {
		if a.before[name] == nil {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// written returns the existing files whose content has changed.
func (a *addition) written() []string {
	var all []string
	for _, name := range a.before.names() {
		if text, err := os.ReadFile(a.path(name)); err == nil && !bytes.Equal(text, a.before[name]) {
			all = append(all, name)
		}
	}
	return all
}

// rollBack restores the project: it removes the new files and folders, and restores the content of changed files.
func (a *addition) rollBack() error {
	var errs []error
	remove := func(name string) {
		if err := os.Remove(a.path(name)); err != nil && !os.IsNotExist(err) {
			errs = append(errs, err)
		}
	}
	for name := range a.added {
		remove(name)
	}
	for name := range a.owned {
		if a.before[name] == nil {
			remove(name)
		}
	}
	for name, text := range a.before {
		if now, err := os.ReadFile(a.path(name)); err != nil || !bytes.Equal(now, text) {
			errs = append(errs, screen.WriteFile(a.path(name), text))
		}
	}
	for _, folder := range slices.Backward(a.folders) {
		remove(folder)
	}
	return errors.Join(errs...)
}
