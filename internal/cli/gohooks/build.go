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

var (
	//go:embed program/main.go
	programSource []byte
	//go:embed program/log.go
	programLog []byte
)

// overlayFolder is the folder of the program's source. It exists only in the overlay of the go command. It is below the
// folder of the package, so that the program can import the same internal packages.
const overlayFolder = "admitkit-runs-these-hooks"

// A Program is a built program that runs the hooks of a package. It is safe for concurrent use. The caller must Close it.
type Program struct {
	// Package is the import path of the hooks' package.
	Package string
	// Hooks are the hooks of the package, in the order of the source. There is at least one.
	Hooks []Hook
	// Deps says that the function Hooks takes dependencies, such as a client configuration. Rules are the permissions
	// that the hooks declare.
	Deps  bool
	Rules map[string][]rbacv1.PolicyRule

	ca      *devcert.CA
	dir     string // temporary folder of the program
	scratch *scratch.Dir
	work    string // working directory of the program: the folder of the package
	log     *lines
}

// A Hook describes one of the hooks that a Program runs.
type Hook struct {
	// Symbol is the source of the hook: the name of a variable or function, or "Hooks()[2]".
	Symbol string
	// Name is the name of its webhook. Path is the URL path at which it is served.
	Name, Path string
	Mutating   bool
}

// Options are the options of Build.
type Options struct {
	// Package has the hooks: a folder relative to Dir, or an import path that the module of Dir can import.
	Dir, Package string
	// Namespace is the namespace that the hooks get as Deps.Namespace. The default is "default".
	Namespace string
	// Log receives the go command's download messages and the hooks' output. It may be nil.
	Log io.Writer
}

// Build builds the program that runs the hooks of a package. Errors are messages for the user.
func Build(ctx context.Context, o Options) (*Program, error) {
	pkg, log := o.Package, o.Log
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	t, err := list(ctx, dir, pkg)
	if err != nil {
		return nil, err
	}
	candidates, err := findIn(t.Dir, slices.Concat(t.GoFiles, t.CgoFiles))
	if syntax := (scanner.ErrorList)(nil); errors.As(err, &syntax) {
		return nil, problem.New("cannot build the hooks of %s:\n%s", pkg, relativeTo(dir, t.Dir, errorLines(syntax)))
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
	if err := p.build(ctx, dir, pkg, generate(t.ImportPath, o.Namespace, candidates), t, others); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// errorLines returns one line per syntax error. Like the compiler, it stops after ten.
func errorLines(all scanner.ErrorList) string {
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

// usable returns the candidates without the misnamed functions, and the names of these functions.
func usable(all []candidate) (found []candidate, misnamedFuncs []string) {
	for _, c := range all {
		if c.sort == misnamed {
			misnamedFuncs = append(misnamedFuncs, c.name)
		} else {
			found = append(found, c)
		}
	}
	return found, misnamedFuncs
}

func noHooks(pkg string, misnamedFuncs []string) error {
	p := problem.New("there are no hooks in %s", pkg)
	if len(misnamedFuncs) > 0 {
		return p.Hint("rename func %s() []*webhook.Hook to Hooks", misnamedFuncs[0])
	}
	return p.
		Hint("write func Hooks() []*webhook.Hook, or exported variables of that type: var Pull = webhook.Mutating(…)")
}

// build builds the program and runs it once to list its hooks.
func (p *Program) build(ctx context.Context, dir, pkg, source string, t *target, others []string) error {
	home := t.Dir
	if !t.Module.Main { // the overlay cannot add files to the module cache
		gomod, err := goTool(ctx, t.runDir, nil, "env", "GOMOD")
		if err != nil {
			return explain(err, pkg)
		}
		home = filepath.Dir(strings.TrimSpace(string(gomod)))
	}
	overlay, err := p.overlay(filepath.Join(home, overlayFolder), source)
	if err != nil {
		return problem.New("cannot build the hooks of %s: %w", pkg, err)
	}
	_, err = goToolIn(ctx, home, p.dir, p.log, "build", "-overlay", overlay, "-buildvcs=false", "-ldflags=-s -w", "-o", p.file(), "./"+overlayFolder)
	var failed *goError
	if errors.As(err, &failed) {
		failed.messages = relativeTo(dir, home, failed.messages)
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

// overlay writes the sources into the temporary folder, and returns an overlay file. With this file, the go command
// reads the sources as if they were in the folder home.
func (p *Program) overlay(home, generated string) (string, error) {
	replace := map[string]string{}
	for name, source := range map[string][]byte{"main.go": programSource, "log.go": programLog, "hooks.go": []byte(generated)} {
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

// Close removes the files of the program. Processes that run the program continue.
func (p *Program) Close() {
	p.scratch.Remove()
}
