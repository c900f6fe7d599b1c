// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/admitkit/admitkit/internal/cli/scratch"
	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/internal/problem"
)

//go:embed program/main.go
var programSource []byte

// folder is where the program's source is for the compiler, and for nobody else: below that of the package, where
// whatever the package may import can be imported, and nobody keeps another package.
const folder = "admitkit-runs-these-hooks"

// A Program is one that runs the hooks of a package. It is safe for concurrent use; Close it.
type Program struct {
	// Package is the import path of the hooks' package.
	Package string
	// Hooks are what was found in it, in order. There is at least one.
	Hooks []Hook
	// Deps says that the function Hooks takes dependencies, such as a client configuration. Rules are the permissions
	// that the hooks declare.
	Deps  bool
	Rules []rbacv1.PolicyRule

	ca      *devcert.CA
	dir     string // temporary, with the program in it
	scratch *scratch.Dir
	work    string // working directory of the program: that of the package
	log     *lines
}

// A Hook is one of those in a package.
type Hook struct {
	// Symbol is where it is from: the name of a variable or function, "Hooks()[2]".
	Symbol string
	// Name is that of its webhook, and Path where it is served.
	Name, Path string
	Mutating   bool
}

// Build builds the program for the hooks of a package: a folder below dir, or an import path that the module around dir knows.
// Lines for people go to log, which may be nil: what the go command downloads, and what the hooks print. Errors are sentences for people.
func Build(ctx context.Context, dir, pkg string, log io.Writer) (*Program, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	t, err := list(ctx, dir, pkg)
	if err != nil {
		return nil, err
	}
	candidates, err := findIn(t.Dir, slices.Concat(t.GoFiles, t.CgoFiles))
	if syntax := (scanner.ErrorList)(nil); errors.As(err, &syntax) {
		return nil, problem.New("cannot build the hooks of %s:\n%s", pkg, seenFrom(dir, t.Dir, listed(syntax)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pkg, err)
	}
	candidates, others := usable(candidates)
	if len(candidates) == 0 {
		return nil, noHooks(pkg, others)
	}
	ca, err := devcert.NewCA()
	if err != nil {
		return nil, err
	}
	temporary, err := scratch.New(os.Getenv("GOTMPDIR"), "admitkit-hooks-")
	if err != nil {
		return nil, problem.New("cannot build the hooks of %s: %w", pkg, err)
	}
	p := &Program{Package: t.ImportPath, ca: ca, dir: temporary.Path, scratch: temporary, work: t.Dir, log: &lines{each: to(log)}}
	if err := p.build(ctx, dir, pkg, t, candidates, others); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// listed is what is wrong with a file, a line each, but not more than the compiler would say.
func listed(all scanner.ErrorList) string {
	const most = 10
	var text []string
	for i, one := range all {
		if i == most {
			text = append(text, "too many errors")
			break
		}
		text = append(text, one.Error())
	}
	return strings.Join(text, "\n")
}

// usable leaves out functions that would be what is looked for if they had its name, and returns their names.
func usable(all []candidate) (found []candidate, misnamedOnes []string) {
	for _, c := range all {
		if c.sort == misnamed {
			misnamedOnes = append(misnamedOnes, c.name)
		} else {
			found = append(found, c)
		}
	}
	return found, misnamedOnes
}

func noHooks(pkg string, misnamedOnes []string) error {
	p := problem.New("there are no hooks in %s", pkg)
	if len(misnamedOnes) > 0 {
		return p.Hint("call it Hooks: func %s() []*webhook.Hook is not looked for by another name", misnamedOnes[0])
	}
	return p.
		Hint("write func Hooks() []*webhook.Hook, or exported variables that hold hooks: var Pull = webhook.Mutating(…)")
}

// build builds the program and has it name its hooks.
func (p *Program) build(ctx context.Context, dir, pkg string, t *target, candidates []candidate, others []string) error {
	home := t.Dir
	if !t.Module.Main { // a module that is kept elsewhere: the overlay cannot reach into the cache of modules
		gomod, err := goTool(ctx, t.runDir, nil, "env", "GOMOD")
		if err != nil {
			return explain(err, pkg)
		}
		home = filepath.Dir(strings.TrimSpace(string(gomod)))
	}
	overlay, err := p.overlay(filepath.Join(home, folder), generate(t.ImportPath, candidates))
	if err != nil {
		return problem.New("cannot build the hooks of %s: %w", pkg, err)
	}
	_, err = goToolIn(ctx, home, p.dir, p.log, "build", "-overlay", overlay, "-buildvcs=false", "-ldflags=-s -w", "-o", p.file(), "./"+folder)
	var failed *goError
	if errors.As(err, &failed) {
		failed.messages = seenFrom(dir, home, failed.messages)
	}
	if err != nil {
		return explain(err, pkg)
	}
	a, err := p.ask(ctx, request{})
	if err != nil {
		return err
	}
	p.Deps, p.Rules = a.Deps, a.Rules
	if p.Hooks = a.Hooks; len(p.Hooks) == 0 {
		return noHooks(pkg, others)
	}
	return nil
}

// overlay writes the sources into the temporary folder, and the file that has the go command see them in home.
func (p *Program) overlay(home, generated string) (string, error) {
	replace := map[string]string{}
	for name, source := range map[string][]byte{"main.go": programSource, "hooks.go": []byte(generated)} {
		file := filepath.Join(p.dir, name)
		if err := os.WriteFile(file, source, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(home, name)] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(p.dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

func (p *Program) file() string {
	name := filepath.Join(p.dir, "hooks")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return name
}

// CA is the certificate, in PEM, that those are verified with which processes of the program serve with.
func (p *Program) CA() []byte { return slices.Clone(p.ca.Bundle) }

// Close removes the program. Processes of it go on.
func (p *Program) Close() {
	p.scratch.Remove()
}
