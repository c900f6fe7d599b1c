// SPDX-License-Identifier: Apache-2.0

// Package source reads string constants in the source code of a webhook that is written in Go. Among them are the keys
// and values of the labels and annotations that switch it on.
package source

import (
	"go/ast"
	"go/build"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// Texts are the string constants in a webhook's code. Those of the handler's own functions come first.
type Texts struct {
	Pairs []Pair   // constants in comparisons such as annotations["key"] == "value"
	Keys  []string // constant keys of labels and annotations
	All   []string // all texts
}

// Limits, so that reading the source of a large module takes little time.
const (
	mostFolders  = 8
	mostFiles    = 60
	mostFileSize = 1 << 20
	mostTexts    = 200
	mostDecls    = 400
	deepestField = 4
	mostElements = 50
)

// Of returns the texts in the source of the handler that newHandler returns. The program has the names of its source
// files. If they cannot be read, for example because the program was built with -trimpath, Of returns no texts.
func Of(newHandler func() http.Handler) (texts Texts) {
	defer func() {
		if recover() != nil { // the user's newHandler failed, which the run reports
			texts = Texts{}
		}
	}()
	if newHandler == nil {
		return texts
	}
	c := &collector{loader: newLoader(), seen: map[ast.Node]bool{}, known: map[string]bool{}, variables: map[ast.Node]map[string]ast.Expr{}}
	for _, at := range positionsOf(newHandler) {
		c.begin(at)
		c.walkAll()
	}
	c.queue = append(c.queue, c.around...)
	c.walkAll()
	return c.texts
}

// A position is a line of a source file.
type position struct {
	file string
	line int
}

// positionsOf returns the positions of the functions and methods in the value that newHandler returns, and then of
// newHandler itself.
func positionsOf(newHandler func() http.Handler) (list []position) {
	seen := map[position]bool{}
	add := func(pc uintptr) {
		f := runtime.FuncForPC(pc)
		if f == nil {
			return
		}
		file, line := f.FileLine(pc)
		if at := (position{file, line}); isOwn(f.Name(), file) && !seen[at] {
			seen[at], list = true, append(list, at)
		}
	}
	functions(reflect.ValueOf(newHandler()), 0, map[reflect.Type]bool{}, add)
	add(reflect.ValueOf(newHandler).Pointer())
	return list
}

// functions calls add with each function in v, and with each method of the types in v. It follows fields, pointers,
// interfaces and the elements of slices. depth is the number of fields on the way to v.
func functions(v reflect.Value, depth int, seen map[reflect.Type]bool, add func(pc uintptr)) {
	if !v.IsValid() || depth > deepestField {
		return
	}
	switch v.Kind() {
	case reflect.Func:
		if !v.IsNil() {
			add(v.Pointer())
		}
		return
	case reflect.Interface:
		functions(v.Elem(), depth, seen, add)
		return
	case reflect.Slice:
		for i := range min(v.Len(), mostElements) {
			functions(v.Index(i), depth, seen, add)
		}
		return
	}
	if seen[v.Type()] {
		return
	}
	seen[v.Type()] = true
	for i := range v.Type().NumMethod() {
		if m := v.Type().Method(i); m.Func.IsValid() {
			add(m.Func.Pointer())
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		functions(v.Elem(), depth, seen, add)
	case reflect.Struct:
		for i := range v.NumField() {
			functions(v.Field(i), depth+1, seen, add)
		}
	}
}

// libraries are the paths of packages that do not belong to a webhook.
var libraries = []string{"k8s.io/", "sigs.k8s.io/", "github.com/admitkit/admitkit/pkg/", "github.com/admitkit/admitkit/internal/"}

// isOwn reports whether a function can belong to the webhook: it is part of neither Go nor a library for webhooks. The
// function has a name such as example.com/hooks.(*Defaulter).Default. Its file may be in any folder. A test file of a
// library may declare a webhook.
func isOwn(function, file string) bool {
	if !strings.HasSuffix(file, ".go") || build.Default.GOROOT != "" && strings.HasPrefix(file, build.Default.GOROOT+"/") {
		return false
	}
	isLibrary := slices.ContainsFunc(libraries, func(path string) bool { return strings.HasPrefix(function, path) })
	return !isLibrary || strings.HasSuffix(file, "_test.go")
}

// A collector collects the texts in the webhook's functions and in the declarations to which they refer.
type collector struct {
	loader *loader
	seen   map[ast.Node]bool
	queue  []reached
	around []reached       // functions around those at the positions; walkAll reads them last
	known  map[string]bool // texts in texts.All
	texts  Texts
	// variables caches the results of assigned, by function.
	variables map[ast.Node]map[string]ast.Expr
}

// A reached is a syntax node that the collector must read, with its package and file.
type reached struct {
	node ast.Node
	in   *folder
	file *ast.File
}

// begin queues the innermost function at a position. It records the functions around it.
func (c *collector) begin(at position) {
	in := c.loader.folderOf(at.file)
	if in == nil {
		return
	}
	file := in.files[at.file]
	if file == nil {
		return
	}
	var around []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncLit, *ast.FuncDecl:
			if begin, end := c.loader.lines(n); begin <= at.line && at.line <= end {
				around = append(around, n)
			}
		}
		return true
	})
	for i, f := range slices.Backward(around) {
		if i == len(around)-1 {
			c.add(reached{f, in, file})
		} else {
			c.around = append(c.around, reached{f, in, file})
		}
	}
}

func (c *collector) add(r reached) {
	if !c.seen[r.node] && len(c.seen) < mostDecls {
		c.seen[r.node] = true
		c.queue = append(c.queue, r)
	}
}

// walkAll reads the queued nodes, which queues the declarations to which they refer.
func (c *collector) walkAll() {
	for len(c.queue) > 0 && len(c.texts.All) < mostTexts {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.read(next)
	}
}

func (c *collector) read(r reached) {
	ast.Inspect(r.node, func(n ast.Node) bool {
		c.compare(r, n)
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BinaryExpr:
			if text, ok := c.text(r, n); ok {
				c.keep(text)
				return false
			}
		case *ast.BasicLit:
			if text, ok := c.text(r, n); ok {
				c.keep(text)
			}
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok {
				c.reach(c.loader.imported(r.in, r.file, pkg.Name), n.Sel.Name)
			}
			c.reach(r.in, n.Sel.Name)
		case *ast.Ident:
			c.reach(r.in, n.Name)
		}
		return true
	})
}

// reach queues the declarations that have a name in a package. in may be nil.
func (c *collector) reach(in *folder, name string) {
	if in == nil {
		return
	}
	for _, d := range in.decls[name] {
		c.add(reached{d.node, in, d.file})
	}
}

func (c *collector) keep(text string) {
	if text != "" && len(text) <= 253 && !c.known[text] {
		c.known[text] = true
		c.texts.All = append(c.texts.All, text)
	}
}
