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

// Options are the flags of "admitkit init" and "admitkit add hook".
type Options struct {
	// Name is the name of the project, its namespace, its Deployment and its Service. Only for Init.
	Name string
	// Dir is the folder of the project. For Init, the default is Name. For Add, it can be any folder in the project.
	Dir string
	// Mutate and Validate are the kinds that get mutating and validating hooks.
	Mutate, Validate []string
	// Module, Domain, Certs, PriorityClass and Admitkit are only for Init. Admitkit is the folder of a checkout of
	// admitkit.
	Module, Domain, Certs, PriorityClass, Admitkit string
	// Replace has entries MODULE=DIR for go.mod. Only for Init.
	Replace []string
	// SkipTidy skips "go mod tidy".
	SkipTidy bool
	// Progress receives the name of each step. May be nil.
	Progress func(step string)
}

func (o *Options) reportProgress(step string) {
	if o.Progress != nil {
		o.Progress(step)
	}
}

// A Result describes the files that Init or Add wrote.
type Result struct {
	Project *Project
	// Dir is the root of the project.
	Dir string
	// Hooks are the new hooks.
	Hooks []*Hook
	// Created are the new files. Written are the existing files that were changed.
	Created, Written []string
	// Notes are messages for the user.
	Notes []string
}

// Init writes a new project. If it fails, it writes nothing.
func Init(ctx context.Context, o Options) (*Result, error) {
	p := &Project{Name: o.Name, Certs: cmp.Or(o.Certs, CertManager), PriorityClass: o.PriorityClass, Module: cmp.Or(o.Module, "example.com/"+o.Name)}
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
	if err := checkVacant(dir); err != nil {
		return nil, err
	}
	if err := p.find(ctx, o.Admitkit); err != nil {
		return nil, err
	}
	all, err := p.render(ctx, &tree{})
	if err != nil {
		return nil, err
	}
	if err := create(ctx, dir, all, &o); err != nil {
		return nil, err
	}
	return &Result{Project: p, Dir: dir, Hooks: p.Hooks, Created: all.names(), Notes: notes(p.Hooks)}, nil
}

// render returns all files of a new project.
func (p *Project) render(ctx context.Context, t *tree) (files, error) {
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
		err = all.addManifests(ctx, p)
	}
	if crds := t.definitions(all); err == nil && len(crds) > 0 {
		err = all.add(definitionsFile, "type/kustomization.yaml", crds)
	}
	return all, err
}

// definitionsFile lists the CustomResourceDefinitions. kubectl and kustomize accept this name. Without the extension
// .yaml, other tools do not read the file as an object.
const definitionsFile = "config/crd/Kustomization"

// create writes the files into a temporary folder and moves them when they are complete. The temporary folder is in
// dir if dir exists, and otherwise beside it.
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
		o.reportProgress("completing go.mod and go.sum")
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

// fill moves the content of from into dir. from is a folder in dir, which contains nothing else.
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

// checkVacant returns an error unless dir is empty, or does not exist and can be created.
func checkVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return problem.New("the folder %s exists and is not empty", dir).
			Hint("admitkit add hook --dir %s  # adds hooks to an existing project", dir).
			Hint("--dir FOLDER  # creates the project in another folder")
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return problem.New("%s exists and is not a folder", dir).Hint("--dir FOLDER")
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return problem.New("cannot create %s: the folder %s does not exist", filepath.Base(dir), parent).Hint("mkdir -p %s", parent)
	}
	return nil
}

// replace parses the values of --replace.
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
			return problem.New("--replace: %s is not a Go module: it has no go.mod", dir)
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

// notes returns the warnings about the kinds of hooks, without duplicates.
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
