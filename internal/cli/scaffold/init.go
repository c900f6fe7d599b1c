// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

// Options say what to write.
type Options struct {
	// Name is that of the project, its namespace, its Deployment and its Service. Only for Init.
	Name string
	// Dir is the folder of the project: the name, if empty. For Add it is one in the project.
	Dir string
	// Mutate and Validate are kinds.
	Mutate, Validate []string
	// Module, Domain and Certs are for Init, as is Admitkit, the folder with admitkit.
	Module, Domain, Certs, Admitkit string
	// Replace are modules and folders, as MODULE=DIR. Only for Init.
	Replace []string
	// SkipTidy leaves it to the user to complete go.mod and go.sum.
	SkipTidy bool
	// Progress receives the name of each step. May be nil.
	Progress func(step string)
}

func (o *Options) tell(what string) {
	if o.Progress != nil {
		o.Progress(what)
	}
}

// A Result is what was done.
type Result struct {
	Project *Project
	// Dir is the root of the project.
	Dir string
	// Hooks are the new ones.
	Hooks []*Hook
	// Created and Written are files that were not there before, and others.
	Created, Written []string
	// Notes are what the user should know.
	Notes []string
}

// Init writes a new project: all of it or, if anything goes wrong, nothing.
func Init(ctx context.Context, o Options) (*Result, error) {
	p := &Project{Name: o.Name, Certs: cmp.Or(o.Certs, SelfManaged), Module: cmp.Or(o.Module, "example.com/"+o.Name)}
	p.Domain = cmp.Or(o.Domain, domainOf(p.Module))
	if err := p.check(); err != nil {
		return nil, err
	}
	var err error
	if p.Hooks, err = p.hooksOf(o.Mutate, o.Validate); err != nil {
		return nil, err
	}
	if err := p.replace(o.Replace); err != nil {
		return nil, err
	}
	dir := cmp.Or(o.Dir, o.Name)
	if err := vacant(dir); err != nil {
		return nil, err
	}
	if err := p.find(ctx, o.Admitkit); err != nil {
		return nil, err
	}
	all, err := p.render(&tree{})
	if err != nil {
		return nil, err
	}
	if err := create(ctx, dir, all, &o); err != nil {
		return nil, err
	}
	return &Result{Project: p, Dir: dir, Hooks: p.Hooks, Created: all.names(), Notes: notes(p.Hooks)}, nil
}

// render makes all files of a new project.
func (p *Project) render(t *tree) (files, error) {
	all := files{}
	for _, h := range p.Hooks {
		if err := all.addKind(h, t); err != nil {
			return nil, err
		}
		if err := all.addHook(h); err != nil {
			return nil, err
		}
	}
	err := all.addProject(p)
	if err == nil {
		all[hooksFile], err = t.list(all)
	}
	if err == nil {
		name, _ := p.printed()
		all[name], err = p.print()
	}
	if crds := t.definitions(all); err == nil && len(crds) > 0 {
		err = all.add(definitionsFile, "type/kustomization.yaml", crds)
	}
	return all, err
}

// definitionsFile is the list of definitions.
const definitionsFile = "config/crd/Kustomization" // of that name kubectl and kustomize read it, and others take it for no object

// create writes the files beside the folder, or in it if it is there, and moves them when they are complete.
func create(ctx context.Context, dir string, all files, o *Options) error {
	parent, prefix := filepath.Dir(filepath.Clean(dir)), filepath.Base(dir)
	_, err := os.Stat(dir)
	empty := err == nil
	if empty {
		parent, prefix = dir, "admitkit"
	}
	temporary, err := os.MkdirTemp(parent, "."+prefix+".*")
	if err != nil {
		return problem.New("%w", err)
	}
	defer os.RemoveAll(temporary)
	absolute, err := filepath.Abs(temporary)
	if err != nil {
		return problem.New("%w", err)
	}
	t := &tree{root: absolute}
	for _, name := range all.names() {
		if err := t.write(name, all[name]); err != nil {
			return err
		}
	}
	if !o.SkipTidy {
		o.tell("completing go.mod and go.sum")
		if err := tidy(ctx, absolute, o.Progress); err != nil {
			return problem.Hint(err, "--skip-tidy  # writes the project as it is; run go mod tidy in it later")
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if empty {
		return fill(dir, temporary)
	}
	err = os.Chmod(temporary, 0o755)
	if err == nil {
		err = os.Rename(temporary, dir)
	}
	if err != nil {
		return problem.New("%w", err)
	}
	return nil
}

// fill moves what is in a folder into another, which is empty but for that one.
func fill(dir, from string) error {
	entries, err := os.ReadDir(from)
	for i, e := range entries {
		if err = os.Rename(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			for _, moved := range entries[:i] {
				err = errors.Join(err, os.RemoveAll(filepath.Join(dir, moved.Name())))
			}
			break
		}
	}
	if err != nil {
		return problem.New("%w", err)
	}
	return nil
}

// vacant says why a project cannot be written into a folder.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return problem.New("%s is there already, and not empty", dir).
			Hint("--dir FOLDER, or in a project that is there: admitkit add hook")
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return problem.New("%s is there already, and no folder", dir).Hint("--dir FOLDER")
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return problem.New("there is no folder %s to make %s in", parent, filepath.Base(dir)).Hint("mkdir -p %s", parent)
	}
	return nil
}

// replace reads the lines for go.mod.
func (p *Project) replace(lines []string) error {
	for _, line := range lines {
		module, dir, ok := strings.Cut(line, "=")
		if !ok || !modulePath.MatchString(module) || dir == "" {
			return problem.New("--replace: %q is not MODULE=DIR", line).Hint("--replace example.com/shop=../shop")
		}
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return problem.New("%w", err)
		}
		if _, err := os.Stat(filepath.Join(absolute, "go.mod")); err != nil {
			return problem.New("--replace: %s is no Go module: it has no go.mod", dir)
		}
		p.Replaces = append(p.Replaces, Replace{Module: module, Dir: absolute})
	}
	return nil
}

func (t *tree) write(name string, text []byte) error {
	file := t.path(name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		return problem.New("%w", err)
	}
	return nil
}

func (f files) names() []string {
	var all []string
	for name := range f {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// notes say what to know of the kinds.
func notes(hooks []*Hook) []string {
	var all []string
	for _, h := range hooks {
		if h.Kind.Beware == "" {
			continue
		}
		note := "hooks for " + h.Kind.Resource + ": " + h.Kind.Beware
		if !slices.Contains(all, note) {
			all = append(all, note)
		}
	}
	return all
}
