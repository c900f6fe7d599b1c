// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A loader parses packages of a module when they are needed.
type loader struct {
	set     *token.FileSet
	folders map[string]*folder
	files   int // number of files parsed
}

// A folder is a parsed package.
type folder struct {
	dir   string
	files map[string]*ast.File
	decls map[string][]decl // package-level declarations and methods, by name
}

type decl struct {
	node ast.Node
	file *ast.File
}

func newLoader() *loader { return &loader{set: token.NewFileSet(), folders: map[string]*folder{}} }

// lines returns the first and the last line of a node.
func (l *loader) lines(n ast.Node) (begin, end int) {
	return l.set.Position(n.Pos()).Line, l.set.Position(n.End()).Line
}

// folderOf returns the package of a file. If the file is a test, the package includes it.
func (l *loader) folderOf(file string) *folder {
	f := l.load(filepath.Dir(file))
	if f != nil && f.files[file] == nil {
		l.parse(f, file)
	}
	return f
}

// load parses the files of a folder, except for tests. It returns nil if the folder has no Go files or mostFolders are
// loaded.
func (l *loader) load(dir string) *folder {
	if f, ok := l.folders[dir]; ok {
		return f
	}
	if len(l.folders) >= mostFolders {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		l.folders[dir] = nil
		return nil
	}
	f := &folder{dir: dir, files: map[string]*ast.File{}, decls: map[string][]decl{}}
	l.folders[dir] = f
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			l.parse(f, name)
		}
	}
	return f
}

func (l *loader) parse(f *folder, name string) {
	info, err := os.Stat(name)
	if err != nil || info.Size() > mostFileSize || l.files >= mostFiles {
		return
	}
	file, err := parser.ParseFile(l.set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return
	}
	l.files++
	f.files[name] = file
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.decls[d.Name.Name] = append(f.decls[d.Name.Name], decl{d, file})
		case *ast.GenDecl:
			for _, s := range d.Specs {
				for _, name := range namesOf(s) {
					f.decls[name] = append(f.decls[name], decl{s, file})
				}
			}
		}
	}
}

func namesOf(s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		names = append(names, s.Name.Name)
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
	}
	return names
}

// imported returns the package that a file imports under a name, if it belongs to the same module.
func (l *loader) imported(in *folder, file *ast.File, name string) *folder {
	for _, i := range file.Imports {
		full, err := strconv.Unquote(i.Path.Value)
		if err != nil || i.Name != nil && i.Name.Name != name || i.Name == nil && path.Base(full) != name {
			continue
		}
		root, module := moduleOf(in.dir)
		if inner, ok := strings.CutPrefix(full, module+"/"); ok && module != "" {
			return l.load(filepath.Join(root, filepath.FromSlash(inner)))
		}
	}
	return nil
}

// moduleOf returns the root folder and the path of the module that a folder belongs to.
func moduleOf(dir string) (root, module string) {
	for root = dir; ; root = filepath.Dir(root) {
		if text, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil { //nolint:gosec // the program's own module
			lines := bufio.NewScanner(bytes.NewReader(text))
			for lines.Scan() {
				if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
					return root, strings.TrimSpace(name)
				}
			}
			return root, ""
		}
		if filepath.Dir(root) == root {
			return "", ""
		}
	}
}

// text returns the value of a string constant: a literal, the name of a constant or variable, or a sum of these.
func (c *collector) text(r reached, e ast.Expr) (string, bool) { return c.constant(r.in, r.file, e, 0) }

// deepestConstant is the maximum number of steps from an expression to its value, so that a cycle ends.
const deepestConstant = 6

func (c *collector) constant(in *folder, file *ast.File, e ast.Expr, depth int) (string, bool) {
	if in == nil || depth > deepestConstant {
		return "", false
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return c.constant(in, file, e.X, depth+1)
	case *ast.BinaryExpr:
		left, ok := c.constant(in, file, e.X, depth+1)
		right, isText := c.constant(in, file, e.Y, depth+1)
		return left + right, ok && isText && e.Op == token.ADD
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok {
			return c.named(c.loader.imported(in, file, pkg.Name), e.Sel.Name, depth)
		}
	case *ast.Ident:
		return c.named(in, e.Name, depth)
	}
	return "", false
}

// named returns the value of a constant or variable of a package.
func (c *collector) named(in *folder, name string, depth int) (string, bool) {
	value, file := in.value(name)
	if value == nil {
		return "", false
	}
	return c.constant(in, file, value, depth+1)
}

// value returns the expression that initializes a package-level constant or variable, and its file. It returns nil if
// there is none. f may be nil.
func (f *folder) value(name string) (ast.Expr, *ast.File) {
	if f == nil {
		return nil, nil
	}
	for _, d := range f.decls[name] {
		s, ok := d.node.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(s.Names, func(n *ast.Ident) bool { return n.Name == name }); i >= 0 && i < len(s.Values) {
			return s.Values[i], d.file
		}
	}
	return nil, nil
}
