// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
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

// A tree is the folder of a project. root is empty while a new project is rendered.
type tree struct{ root string }

func (t *tree) path(name string) string { return filepath.Join(t.root, filepath.FromSlash(name)) }

// has reports whether a file exists.
func (t *tree) has(name string) bool {
	if t.root == "" {
		return false
	}
	_, err := os.Lstat(t.path(name))
	return err == nil
}

// parse parses the Go files of a folder, sorted by name. It skips files that cannot be parsed.
func (t *tree) parse(folder string) []*ast.File {
	if t.root == "" {
		return nil
	}
	entries, _ := os.ReadDir(t.path(folder)) // a missing folder counts as empty
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

// declaresType reports whether the package in a folder declares a name.
func (t *tree) declaresType(folder, name string) bool {
	return slices.ContainsFunc(t.parse(folder), func(f *ast.File) bool {
		return slices.Contains(declared(f), name)
	})
}

// packageName returns the package name of a folder's Go files, or a suitable name if there are none.
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

// declared returns the top-level names that a file declares, without methods.
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

// constructors returns the functions of a file that have no parameters and return a *webhook.Hook.
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

// hooksFile is the file with the list of hooks.
const hooksFile = "hooks/hooks.go"

// list returns the new text of hooks/hooks.go: the constructors in new files are added at the end of the list that the
// function Hooks returns. If the file does not exist yet, it lists all hooks of the folder. If the user has written the
// function in another way, list returns nil.
func (t *tree) list(added files) ([]byte, error) {
	var names []string
	for _, name := range added.names() {
		if path.Dir(name) == "hooks" && mayHaveHooks(name) {
			names = append(names, constructors(parseFile(name, added[name]))...)
		}
	}
	if t.has(hooksFile) {
		text, err := os.ReadFile(t.path(hooksFile))
		if err != nil {
			return nil, problem.New("%w", err)
		}
		return extendList(text, names), nil
	}
	if t.root != "" {
		if _, err := os.ReadDir(t.path("hooks")); err != nil {
			return nil, problem.New("%w", err)
		}
		names = append(t.constructors(), names...)
	}
	return render("hook/hooks.go", names)
}

// extendList adds calls at the end of the list that the function Hooks returns. It returns nil unless the last
// statement of the function returns a composite literal, with its closing brace at the beginning of a line.
func extendList(text []byte, names []string) []byte {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, hooksFile, text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	for _, decl := range f.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || d.Recv != nil || d.Name.Name != "Hooks" || d.Body == nil || len(d.Body.List) == 0 {
			continue
		}
		returned, ok := d.Body.List[len(d.Body.List)-1].(*ast.ReturnStmt)
		if !ok || len(returned.Results) == 0 {
			return nil
		}
		literal, ok := returned.Results[0].(*ast.CompositeLit)
		if !ok {
			return nil
		}
		brace := files.Position(literal.Rbrace).Offset
		line := bytes.LastIndexByte(text[:brace], '\n') + 1
		if len(bytes.TrimSpace(text[line:brace])) > 0 {
			return nil
		}
		out := bytes.Clone(text[:line])
		for _, name := range names {
			out = fmt.Appendf(out, "\t\t%s(),\n", name)
		}
		return append(out, text[line:]...)
	}
	return nil
}

// constructors returns the constructors in all files of hooks/.
func (t *tree) constructors() []string {
	entries, _ := os.ReadDir(t.path("hooks")) // a missing folder counts as empty
	var names []string
	for _, e := range entries {
		if name := "hooks/" + e.Name(); mayHaveHooks(name) {
			if f := parseFile(t.path(name), nil); f != nil {
				names = append(names, constructors(f)...)
			}
		}
	}
	return names
}

// unlisted returns the constructors that hooks/hooks.go does not call.
func (t *tree) unlisted() []string {
	if !t.has(hooksFile) {
		return nil
	}
	listed := t.listed()
	return slices.DeleteFunc(t.constructors(), func(name string) bool { return slices.Contains(listed, name) })
}

// listed returns the functions that hooks/hooks.go calls, in its order.
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

// mayHaveHooks reports whether a file is a Go file that can declare hooks.
func mayHaveHooks(name string) bool {
	return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && name != hooksFile
}

// definitions returns the names of the existing and new files with CustomResourceDefinitions.
func (t *tree) definitions(added files) []string {
	var names []string
	if t.root != "" {
		entries, _ := os.ReadDir(t.path("config/crd")) // a missing folder counts as empty
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
