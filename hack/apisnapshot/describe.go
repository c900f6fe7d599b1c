// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// describe returns the exported API of the package in dir as Go declarations without bodies and comments, or
// "" if dir has no package.
func describe(dir string) (string, error) {
	found, err := build.ImportDir(dir, 0)
	if none := (*build.NoGoError)(nil); errors.As(err, &none) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, found.ImportPath)
	if err != nil {
		return "", err
	}
	p := &printer{fset: fset}
	fmt.Fprintf(&p.text, "package %s\n", pkg.Name)
	p.values(pkg.Consts)
	p.values(pkg.Vars)
	p.funcs(pkg.Funcs)
	for _, t := range pkg.Types {
		p.decl(t.Decl)
		p.values(t.Consts)
		p.values(t.Vars)
		p.funcs(t.Funcs)
		p.funcs(t.Methods)
	}
	return p.text.String(), p.err
}

// printer writes declarations and keeps the first error.
type printer struct {
	fset *token.FileSet
	text strings.Builder
	err  error
}

func (p *printer) values(values []*doc.Value) {
	for _, value := range values {
		p.decl(value.Decl)
	}
}

func (p *printer) funcs(funcs []*doc.Func) {
	for _, f := range funcs {
		p.decl(f.Decl)
	}
}

func (p *printer) decl(decl ast.Decl) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Doc, n.Body = nil, nil
		case *ast.FuncLit:
			n.Body = &ast.BlockStmt{}
		}
		return true
	})
	var text bytes.Buffer
	err := format.Node(&text, p.fset, decl)
	if err == nil {
		var tidy []byte
		tidy, err = format.Source(blankLines.ReplaceAll(text.Bytes(), []byte("\n")))
		fmt.Fprintf(&p.text, "\n%s\n", tidy)
	}
	if p.err == nil {
		p.err = err
	}
}

// blankLines matches the blank lines that removed comments leave, because a comment must not change a snapshot.
var blankLines = regexp.MustCompile(`\n\n+`)
