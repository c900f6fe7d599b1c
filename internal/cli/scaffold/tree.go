// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

// A tree is the folder of a project; that of a new one is empty.
type tree struct{ root string }

func (t *tree) path(name string) string { return filepath.Join(t.root, filepath.FromSlash(name)) }

// has tells whether there is a file.
func (t *tree) has(name string) bool {
	if t.root == "" {
		return false
	}
	_, err := os.Lstat(t.path(name))
	return err == nil
}

// parse reads the Go files of a folder, in the order of their names, as far as they can be read.
func (t *tree) parse(folder string) []*ast.File {
	if t.root == "" {
		return nil
	}
	entries, _ := os.ReadDir(t.path(folder)) // none is empty
	var all []*ast.File
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".go" {
			continue
		}
		if f := parseFile(filepath.Join(t.path(folder), e.Name()), nil); f != nil {
			all = append(all, f)
		}
	}
	return all
}

func parseFile(name string, text any) *ast.File {
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil && (f == nil || f.Name == nil) {
		return nil
	}
	return f
}

// declaresType tells whether a folder has a type.
func (t *tree) declaresType(folder, name string) bool {
	return slices.ContainsFunc(t.parse(folder), func(f *ast.File) bool {
		return slices.Contains(declared(f), name)
	})
}

// packageName is how the files of a folder are called, or would best be.
func (t *tree) packageName(folder string) string {
	for _, f := range t.parse(folder) {
		if !strings.HasSuffix(f.Name.Name, "_test") {
			return f.Name.Name
		}
	}
	name := identifier(path.Base(folder))
	if name == "" || name[0] <= '9' || token.IsKeyword(name) {
		name = "api" + name
	}
	return name
}

// declared are the names that a file declares.
func declared(f *ast.File) []string {
	var names []string
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// constructors are the functions of a file that have no parameters and return a *webhook.Hook.
func constructors(f *ast.File) []string {
	hook := ""
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil && p == admitkitModule+"/pkg/webhook" {
			hook = "webhook"
			if i.Name != nil {
				hook = i.Name.Name
			}
		}
	}
	var names []string
	for _, decl := range f.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || d.Recv != nil || d.Type.TypeParams != nil || d.Type.Params.NumFields() > 0 || d.Type.Results.NumFields() != 1 {
			continue
		}
		star, ok := d.Type.Results.List[0].Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		selector, ok := star.X.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "Hook" {
			continue
		}
		if from, ok := selector.X.(*ast.Ident); ok && from.Name == hook {
			names = append(names, d.Name.Name)
		}
	}
	return names
}

// hooksFile is the list of hooks.
const hooksFile = "hooks/hooks.go"

// list renders the list of the hooks that are listed, in their order, in which they are called, and of those in new
// files. If there is no list yet, it has all that the tree has.
func (t *tree) list(added files) ([]byte, error) {
	names := t.listed()
	if t.root != "" && !t.has(hooksFile) {
		if _, err := os.ReadDir(t.path("hooks")); err != nil {
			return nil, problem.New("%w", err)
		}
		names = t.constructors()
	}
	for _, name := range added.names() {
		if path.Dir(name) == "hooks" && lists(name) {
			names = append(names, constructors(parseFile(name, added[name]))...)
		}
	}
	return render("hook/hooks.go", names)
}

// constructors are those of all files with hooks.
func (t *tree) constructors() []string {
	entries, _ := os.ReadDir(t.path("hooks")) // none is empty
	var names []string
	for _, e := range entries {
		if name := "hooks/" + e.Name(); lists(name) {
			if f := parseFile(t.path(name), nil); f != nil {
				names = append(names, constructors(f)...)
			}
		}
	}
	return names
}

// unlisted are those that the list does not call.
func (t *tree) unlisted() []string {
	if !t.has(hooksFile) {
		return nil
	}
	listed := t.listed()
	return slices.DeleteFunc(t.constructors(), func(name string) bool { return slices.Contains(listed, name) })
}

// listed are the functions that the list calls, in its order.
func (t *tree) listed() []string {
	if !t.has(hooksFile) {
		return nil
	}
	var names []string
	if f := parseFile(t.path(hooksFile), nil); f != nil {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name, ok := call.Fun.(*ast.Ident); ok {
					names = append(names, name.Name)
				}
			}
			return true
		})
	}
	return names
}

func lists(name string) bool {
	return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && name != hooksFile
}

// definitions lists the files with definitions that a folder has, and those that are new.
func (t *tree) definitions(added files) []string {
	var names []string
	if t.root != "" {
		entries, _ := os.ReadDir(t.path("config/crd")) // none is empty
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	for name := range added {
		if path.Dir(name) == "config/crd" {
			names = append(names, path.Base(name))
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return path.Ext(name) != ".yaml" })
	slices.Sort(names)
	return slices.Compact(names)
}
