// SPDX-License-Identifier: Apache-2.0

// Package vet finds errors of admission handlers that were meant as denials.
//
// In controller-runtime, any error of a validator denies the request. In package webhook, an error is a failure to decide,
// which the failurePolicy decides, unless it is a denial such as that of webhook.Deny. A validator that is moved without
// this change admits what it should deny, if its policy is Ignore.
//
// The analyzer works with "admitkit vet ./...", with "go vet -vettool=$(which admitkit) ./...", and with every driver of
// golang.org/x/tools/go/analysis.
package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports an error that a handler of package webhook returns and that was made without another error, by errors.New
// or fmt.Errorf: it describes the object, so it was most likely meant as a denial. It follows local
// variables, and calls of functions of the same package. A comment //admitkit:failure on the line, or on the line above, accepts the
// error.
var Analyzer = &analysis.Analyzer{
	Name: "denial",
	Doc:  "report errors of admission handlers that should be denials\n\nA plain error of a hook is a failure to decide, which the failurePolicy decides. To deny a request, return webhook.Deny.",
	URL:  "https://github.com/admitkit/admitkit/blob/main/docs/migrating.md",
	Run:  run,
}

const (
	webhookPackage = "github.com/admitkit/admitkit/pkg/webhook"
	accepted       = "//admitkit:failure"
)

// A finder searches the files of one package.
type finder struct {
	*analysis.Pass
	declared map[*types.Func]*ast.FuncDecl
	visited  map[*ast.BlockStmt]bool
	accepted map[string]bool // file:line with the comment
}

func run(pass *analysis.Pass) (any, error) {
	f := &finder{pass, map[*types.Func]*ast.FuncDecl{}, map[*ast.BlockStmt]bool{}, map[string]bool{}}
	var handlers []*ast.BlockStmt
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, accepted) {
					at := pass.Fset.Position(c.Pos())
					f.accepted[place(at.Filename, at.Line)], f.accepted[place(at.Filename, at.Line+1)] = true, true
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if of, ok := pass.TypesInfo.Defs[n.Name].(*types.Func); ok && n.Body != nil {
					f.declared[of] = n
					if isHandler(of.Signature()) {
						handlers = append(handlers, n.Body)
					}
				}
			case *ast.FuncLit:
				if of, ok := pass.TypesInfo.TypeOf(n).(*types.Signature); ok && isHandler(of) {
					handlers = append(handlers, n.Body)
				}
			}
			return true
		})
	}
	for _, body := range handlers {
		f.visit(body)
	}
	return nil, nil
}

func place(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

// isHandler reports whether a function takes a *webhook.Request and returns an error last.
func isHandler(of *types.Signature) bool {
	if of.Results().Len() == 0 || !isError(of.Results().At(of.Results().Len()-1).Type()) {
		return false
	}
	for parameter := range of.Params().Variables() {
		pointer, ok := parameter.Type().(*types.Pointer)
		if !ok {
			continue
		}
		if named, ok := pointer.Elem().(*types.Named); ok && named.Obj().Name() == "Request" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == webhookPackage {
			return true
		}
	}
	return false
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

func isError(t types.Type) bool { return t != nil && types.Implements(t, errorType) }

// visit checks the errors that a function returns, also through a local variable. It skips function literals inside of
// it.
func (f *finder) visit(body *ast.BlockStmt) {
	if f.visited[body] {
		return
	}
	f.visited[body] = true
	assigned := map[types.Object][]ast.Expr{} // what the function assigns to its variables
	var returned []ast.Expr
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && (len(n.Lhs) == len(n.Rhs) || i == len(n.Lhs)-1) {
					of := f.TypesInfo.ObjectOf(name)
					assigned[of] = append(assigned[of], n.Rhs[min(i, len(n.Rhs)-1)])
				}
			}
		case *ast.ReturnStmt:
			if len(n.Results) > 0 {
				returned = append(returned, n.Results[len(n.Results)-1])
			}
		}
		return true
	})
	for _, e := range returned {
		name, ok := ast.Unparen(e).(*ast.Ident)
		if !ok {
			f.check(e)
			continue
		}
		of := f.TypesInfo.ObjectOf(name)
		for _, value := range assigned[of] {
			f.check(value)
		}
		delete(assigned, of) // each is checked once
	}
}

// check reports a returned error if it was made without another one.
func (f *finder) check(returned ast.Expr) {
	call, ok := ast.Unparen(returned).(*ast.CallExpr)
	if !ok {
		return
	}
	of := f.callee(call)
	if of == nil {
		return
	}
	switch of.FullName() {
	case "errors.Join":
		for _, one := range call.Args {
			f.check(one)
		}
	case "errors.New":
		f.report(call, "Deny")
	case "fmt.Errorf":
		f.report(call, "Denyf")
	default:
		if d := f.declared[of.Origin()]; d != nil {
			f.visit(d.Body)
		}
	}
}

func (f *finder) callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok { // an instance of a generic function
		fun = index.X
	}
	switch fun := fun.(type) {
	case *ast.Ident:
		of, _ := f.TypesInfo.Uses[fun].(*types.Func)
		return of
	case *ast.SelectorExpr:
		of, _ := f.TypesInfo.Uses[fun.Sel].(*types.Func)
		return of
	}
	return nil
}

// report reports a call that makes an error, unless one of its arguments has another error: then something failed.
func (f *finder) report(call *ast.CallExpr, denial string) {
	at := f.Fset.Position(call.Pos())
	if f.accepted[place(at.Filename, at.Line)] {
		return
	}
	failed := false
	for _, argument := range call.Args {
		ast.Inspect(argument, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && isError(f.TypesInfo.TypeOf(e)) {
				failed = true
			}
			return !failed
		})
	}
	if failed {
		return
	}
	d := analysis.Diagnostic{
		Pos: call.Pos(), End: call.End(),
		Message: "this error does not deny the request: it is a failure to decide, which the failurePolicy decides; to deny, return webhook." + denial,
	}
	if name := f.nameOfWebhook(call.Pos()); name != "" {
		d.SuggestedFixes = []analysis.SuggestedFix{{
			Message:   "return " + name + "." + denial,
			TextEdits: []analysis.TextEdit{{Pos: call.Fun.Pos(), End: call.Fun.End(), NewText: []byte(name + "." + denial)}},
		}}
	}
	f.Report(d)
}

// nameOfWebhook returns the name of package webhook in the file of a position, or "" if the file does not import it.
func (f *finder) nameOfWebhook(at token.Pos) string {
	for _, file := range f.Files {
		if at < file.FileStart || at >= file.FileEnd {
			continue
		}
		for _, spec := range file.Imports {
			if imported := f.TypesInfo.PkgNameOf(spec); imported != nil && imported.Imported().Path() == webhookPackage {
				return imported.Name()
			}
		}
	}
	return ""
}
