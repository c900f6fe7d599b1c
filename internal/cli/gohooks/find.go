// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

const (
	webhookPath = "github.com/admitkit/admitkit/pkg/webhook"
	programPath = "github.com/admitkit/admitkit/pkg/program"
)

// A candidate is an exported name of the package that may provide hooks.
type candidate struct {
	name   string
	sort   sort
	hasErr bool // the function also returns an error
	deps   bool // the function Hooks takes a context and *program.Deps
}

type sort int

const (
	all      sort = iota // the function Hooks
	function             // a function that returns one hook
	variable             // a variable; the program checks its type
	misnamed             // has the type of Hooks, but another name
)

// findIn returns the candidates in the files of a package, in the order of the source. The error may be a
// scanner.ErrorList.
func findIn(dir string, files []string) ([]candidate, error) {
	var found []candidate
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			c, err := candidatesOf(decl, typesOf(file))
			if err != nil {
				return nil, err
			}
			found = append(found, c...)
		}
	}
	for _, c := range found {
		if c.sort == all {
			return []candidate{c}, nil
		}
	}
	return found, nil
}

// types has the names by which a file refers to *webhook.Hook, context.Context and *program.Deps. A name is empty if
// the file does not import the package.
type types struct{ hook, context, deps string }

func typesOf(file *ast.File) types {
	return types{
		hook:    typeIn(file, "*", webhookPath, "webhook", "Hook"),
		context: typeIn(file, "", "context", "context", "Context"),
		deps:    typeIn(file, "*", programPath, "program", "Deps"),
	}
}

// typeIn returns the name by which a file refers to a type of an imported package, or "".
func typeIn(file *ast.File, prefix, path, name, typeName string) string {
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil || imported != path {
			continue
		}
		switch {
		case i.Name == nil:
			return prefix + name + "." + typeName
		case i.Name.Name == ".":
			return prefix + typeName
		default:
			return prefix + i.Name.Name + "." + typeName
		}
	}
	return ""
}

func candidatesOf(decl ast.Decl, known types) ([]candidate, error) {
	switch d := decl.(type) {
	case *ast.GenDecl:
		if d.Tok != token.VAR {
			return nil, nil
		}
		var found []candidate
		for _, spec := range d.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() {
					found = append(found, candidate{name: name.Name, sort: variable})
				}
			}
		}
		return found, nil
	case *ast.FuncDecl:
		c, err := functionOf(d, known)
		if c == nil {
			return nil, err
		}
		return []candidate{*c}, err
	}
	return nil, nil
}

func functionOf(d *ast.FuncDecl, known types) (*candidate, error) {
	if d.Recv != nil || !d.Name.IsExported() {
		return nil, nil
	}
	var results []string
	if d.Type.Results != nil {
		for _, field := range d.Type.Results.List {
			for range max(1, len(field.Names)) {
				results = append(results, typeText(field.Type))
			}
		}
	}
	hasErr := len(results) == 2 && results[1] == "error"
	callable := d.Type.TypeParams == nil && (len(results) == 1 || hasErr)
	plain := callable && d.Type.Params.NumFields() == 0
	deps := callable && slices.Equal(parameters(d), []string{known.context, known.deps})
	switch {
	case d.Name.Name == "Hooks":
		if !plain && !deps || results[0] != "[]"+known.hook {
			return nil, problem.New("admitkit cannot call the function Hooks: its parameters or results are not supported").
				Hint("declare it as func Hooks() []*webhook.Hook").
				Hint("with dependencies, func Hooks(ctx context.Context, deps *program.Deps) ([]*webhook.Hook, error)")
		}
		return &candidate{name: "Hooks", sort: all, hasErr: hasErr, deps: deps}, nil
	case (plain || deps) && results[0] == "[]"+known.hook:
		return &candidate{name: d.Name.Name, sort: misnamed}, nil
	case plain && results[0] == known.hook:
		return &candidate{name: d.Name.Name, sort: function, hasErr: hasErr}, nil
	}
	return nil, nil
}

// parameters returns the types of a function's parameters.
func parameters(d *ast.FuncDecl) (list []string) {
	for _, field := range d.Type.Params.List {
		for range max(1, len(field.Names)) {
			list = append(list, typeText(field.Type))
		}
	}
	return list
}

// typeText returns the source text of a type. It returns "?" for types that are not needed here.
func typeText(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return "*" + typeText(t.X)
	case *ast.SelectorExpr:
		return typeText(t.X) + "." + t.Sel.Name
	case *ast.ArrayType:
		if t.Len == nil {
			return "[]" + typeText(t.Elt)
		}
	}
	return "?"
}

// generate returns the source of the file that adds the hooks of the package to the program. The namespace is for hooks with
// dependencies.
func generate(importPath, namespace string, found []candidate) string {
	var calls strings.Builder
	for _, c := range found {
		value := "hooks." + c.name
		switch {
		case c.deps && c.hasErr:
			fmt.Fprintf(&calls, "\t\tf.all(%s(ctx, deps)),\n", value)
		case c.deps:
			fmt.Fprintf(&calls, "\t\tf.all(%s(ctx, deps), nil),\n", value)
		case c.sort == all && c.hasErr:
			fmt.Fprintf(&calls, "\t\tf.all(%s()),\n", value)
		case c.sort == all:
			fmt.Fprintf(&calls, "\t\tf.all(%s(), nil),\n", value)
		case c.sort == function && c.hasErr:
			fmt.Fprintf(&calls, "\t\tf.result(%q)(%s()),\n", c.name, value)
		case c.sort == function:
			fmt.Fprintf(&calls, "\t\tf.add(%q, %s(), nil),\n", c.name, value)
		default:
			fmt.Fprintf(&calls, "\t\tf.variable(%q, %s),\n", c.name, value)
		}
	}
	if len(found) == 1 && found[0].deps {
		return fmt.Sprintf(withDeps, importPath, cmp.Or(namespace, "default"), calls.String())
	}
	return fmt.Sprintf(withoutDeps, importPath, calls.String())
}

const withoutDeps = `package main

import (
	"context"
	"errors"

	hooks %q
)

func find(_ context.Context, _ string, f *hookList) error {
	return errors.Join(
%s	)
}
`

// withDeps is the generated file for a function Hooks that takes dependencies. It calls Hooks with the client
// configuration from a kubeconfig, or without a client configuration.
const withDeps = `package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/pkg/program"

	hooks %q
)

func find(ctx context.Context, kubeconfig string, f *hookList) error {
	var config *rest.Config
	if kubeconfig != "" {
		var err error
		files := clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
		if len(files.Precedence) == 1 { // which must exist
			files = clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
		}
		if config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&files, nil).ClientConfig(); err != nil {
			return err
		}
	}
	deps := program.NewDeps(config, logr.FromContextOrDiscard(ctx))
	deps.Namespace = %q
	err := errors.Join(
%s	)
	f.start, f.ready, f.rules, f.deps = deps.Start, deps.Ready, deps.Rules(), true
	return err
}
`
