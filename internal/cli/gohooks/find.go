// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

const webhookPath = "github.com/admitkit/admitkit/pkg/webhook"

// A candidate is an exported name of the package that is a hook, or may be one.
type candidate struct {
	name   string
	sort   sort
	hasErr bool // the function returns an error, too
}

type sort int

const (
	all      sort = iota // the function Hooks
	function             // returns a hook
	variable             // holds a hook, if its type is that: the program will see
	misnamed             // would be all, if it were called Hooks
)

// findIn returns what the files of a package declare, in their order. The error may be a scanner.ErrorList.
func findIn(dir string, files []string) ([]candidate, error) {
	var found []candidate
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			c, err := candidatesOf(decl, hookType(file))
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

// hookType is how a file writes the type *webhook.Hook.
func hookType(file *ast.File) string {
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil || path != webhookPath {
			continue
		}
		switch {
		case i.Name == nil:
			return "*webhook.Hook"
		case i.Name.Name == ".":
			return "*Hook"
		default:
			return "*" + i.Name.Name + ".Hook"
		}
	}
	return ""
}

func candidatesOf(decl ast.Decl, hook string) ([]candidate, error) {
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
		c, err := functionOf(d, hook)
		if c == nil {
			return nil, err
		}
		return []candidate{*c}, err
	}
	return nil, nil
}

func functionOf(d *ast.FuncDecl, hook string) (*candidate, error) {
	if d.Recv != nil || !d.Name.IsExported() {
		return nil, nil
	}
	var results []string
	if d.Type.Results != nil {
		for _, field := range d.Type.Results.List {
			for range max(1, len(field.Names)) {
				results = append(results, written(field.Type))
			}
		}
	}
	hasErr := len(results) == 2 && results[1] == "error"
	plain := d.Type.TypeParams == nil && d.Type.Params.NumFields() == 0 && (len(results) == 1 || hasErr)
	switch {
	case d.Name.Name == "Hooks":
		if !plain || results[0] != "[]"+hook {
			return nil, problem.New("the function Hooks is not one that can be called: it has parameters, or other results").
				Hint("declare it as func Hooks() []*webhook.Hook, or with an error as its second result")
		}
		return &candidate{name: "Hooks", sort: all, hasErr: hasErr}, nil
	case plain && results[0] == "[]"+hook:
		return &candidate{name: d.Name.Name, sort: misnamed}, nil
	case plain && results[0] == hook:
		return &candidate{name: d.Name.Name, sort: function, hasErr: hasErr}, nil
	}
	return nil, nil
}

// written is a type as it is written, as far as it matters here.
func written(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return "*" + written(t.X)
	case *ast.SelectorExpr:
		return written(t.X) + "." + t.Sel.Name
	case *ast.ArrayType:
		if t.Len == nil {
			return "[]" + written(t.Elt)
		}
	}
	return "?"
}

// generate writes the file that the program is missing.
func generate(importPath string, found []candidate) string {
	var calls strings.Builder
	for _, c := range found {
		value := "hooks." + c.name
		switch {
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
	return fmt.Sprintf(`package main

import (
	"errors"

	hooks %q
)

func find(f *found) error {
	return errors.Join(
%s	)
}
`, importPath, calls.String())
}
