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

// Add adds hooks to the project that a folder is in: all of them or, if anything goes wrong, none.
func Add(ctx context.Context, o Options) (result *Result, err error) {
	p, root, err := load(cmp.Or(o.Dir, "."))
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
			err = errors.Join(err, a.takeBack())
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

// An addition is what Add does to a project.
type addition struct {
	tree
	project *Project
	added   files // new ones
	owned   files // those that are written again
	before  files // what was in the files that are written again
	folders []string
	notes   []string
}

// render makes all files, and refuses what would be in somebody's way.
func (a *addition) render() error {
	list, err := a.ownList()
	if err != nil {
		return err
	}
	crds := a.ownDefinitions()
	for _, h := range a.project.Hooks {
		if err := a.free(h); err != nil {
			return err
		}
		if err := a.added.addKind(h, &a.tree); err != nil {
			return err
		}
		if err := a.added.addHook(h); err != nil {
			return err
		}
	}
	a.owned = files{}
	if list {
		if a.owned[hooksFile], err = a.list(a.added); err != nil {
			return err
		}
		if others := a.unlisted(); len(others) > 0 {
			a.notes = append(a.notes, hooksFile+" does not have "+calls(others)+", which is left so: add what is a hook of its own")
		}
	} else {
		var names []string
		for _, h := range a.project.Hooks {
			names = append(names, h.Constructor())
		}
		a.notes = append(a.notes, hooksFile+" was edited and is left alone: add "+calls(names)+" to it, then run make manifests")
	}
	all := a.definitions(a.added)
	switch {
	case slices.Equal(all, a.definitions(nil)):
		return nil
	case !crds:
		a.notes = append(a.notes, definitionsFile+" was edited and is left alone: add "+strings.Join(all, ", ")+" to it")
		return nil
	}
	return a.owned.add(definitionsFile, "type/kustomization.yaml", all)
}

// calls is how functions are listed.
func calls(names []string) string { return strings.Join(names, "(), ") + "()" }

// ownList tells whether the list of hooks is as it would be written with what it lists.
func (a *addition) ownList() (bool, error) {
	if !a.has(hooksFile) {
		return true, nil
	}
	text, err := os.ReadFile(a.path(hooksFile))
	if err != nil {
		return false, problem.New("%w", err)
	}
	want, err := render("hook/hooks.go", a.listed())
	return bytes.Equal(text, want), err
}

// ownDefinitions tells the same of the list of definitions.
func (a *addition) ownDefinitions() bool {
	text, err := os.ReadFile(a.path(definitionsFile))
	if err != nil {
		return true
	}
	want, err := render("type/kustomization.yaml", a.definitions(nil))
	return err == nil && bytes.Equal(text, want)
}

// free refuses a hook of which a file or a name is there already.
func (a *addition) free(h *Hook) error {
	for _, name := range []string{"hooks/" + h.File(), "hooks/" + h.TestFile(), "e2e/" + h.TestFile()} {
		if a.has(name) {
			return problem.New("%s is there already: nothing was changed", name).
				Hint("edit it, or give it another name").
				Hint("if an add hook was killed: list the hook in %s and run make manifests, or remove its files and add it again", hooksFile)
		}
	}
	for _, folder := range []string{"hooks", "e2e"} {
		for _, f := range a.parse(folder) {
			for _, name := range h.declares() {
				if slices.Contains(declared(f), name) && (folder == "hooks" || name == h.Test()) {
					return problem.New("%s declares %s already, which would be the name of the new one: nothing was changed", folder, name)
				}
			}
		}
	}
	return nil
}

// write writes what was rendered, and remembers what was there.
func (a *addition) write() error {
	for _, name := range a.added.names() {
		if err := a.make(path.Dir(name)); err != nil {
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
			continue // the last one
		}
		if err := screen.WriteFile(a.path(name), a.owned[name]); err != nil {
			return problem.New("%w", err)
		}
	}
	return nil
}

// make makes a folder, and those above it.
func (a *addition) make(folder string) error {
	if folder == "." || a.has(folder) {
		return nil
	}
	if err := a.make(path.Dir(folder)); err != nil {
		return err
	}
	if err := os.Mkdir(a.path(folder), 0o755); err != nil {
		return problem.New("%w", err)
	}
	a.folders = append(a.folders, folder)
	return nil
}

// complete does what the new files need besides: modules, what the program prints of its hooks, and last the list of
// them. Until then the program is the one that it was, should we be killed.
func (a *addition) complete(ctx context.Context, o *Options) error {
	if !o.SkipTidy {
		o.tell("completing go.mod and go.sum")
		if err := tidy(ctx, a.root, o.Progress); err != nil {
			return err
		}
	}
	if a.owned[hooksFile] == nil {
		return nil // the new hooks are not in the list yet
	}
	if err := a.print(ctx, o); err != nil {
		return err
	}
	if err := screen.WriteFile(a.path(hooksFile), a.owned[hooksFile]); err != nil {
		return problem.New("%w", err)
	}
	return nil
}

// created are the files that were not there.
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

// written are the files that were there and are not as they were.
func (a *addition) written() []string {
	var all []string
	for _, name := range a.before.names() {
		if text, err := os.ReadFile(a.path(name)); err == nil && !bytes.Equal(text, a.before[name]) {
			all = append(all, name)
		}
	}
	return all
}

// takeBack leaves the project as it was.
func (a *addition) takeBack() error {
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
