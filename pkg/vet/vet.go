// SPDX-License-Identifier: Apache-2.0

// Package vet finds plain errors that an admission handler returns where it should return a denial.
//
// In controller-runtime, any error of a validator denies the request. In package webhook, an error denies the request
// only if it is a denial, such as one from webhook.Deny. Any other error is a failure to decide, and the failurePolicy
// applies. A validator that is moved from controller-runtime and still returns plain errors admits what it should deny,
// if its failurePolicy is Ignore.
//
// The analyzer works with "admitkit vet ./...", with "go vet -vettool=$(which admitkit) ./...", and with every driver
// of golang.org/x/tools/go/analysis.
package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports an error that a handler of package webhook returns, if errors.New or fmt.Errorf made it without
// another error. Such an error describes the object, so it was most likely meant as a denial. The analyzer follows
// variables, and calls of functions of the same package that return only an error. It does not follow the order of
// statements, so it also reports a value that is overwritten before the return. A comment //admitkit:failure on the
// line, or on the line above, accepts the error.
var Analyzer = &analysis.Analyzer{
	Name: "denial",
	Doc:  "report errors of admission handlers that should be denials\n\nA plain error of a hook is a failure to decide, so the failurePolicy applies. To deny a request, return webhook.Deny.",
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
	declared  map[*types.Func]function
	variables map[types.Object]ast.Expr // initial values of the package's variables
	visited   map[*ast.BlockStmt]bool
	reported  map[token.Pos]bool
	accepted  map[string]bool // file:line with the comment
}

// A function is a function declaration or literal.
type function struct {
	typ  *ast.FuncType
	body *ast.BlockStmt
}

// values maps each variable to the expressions that a function assigns to it.
type values map[types.Object][]ast.Expr

func run(pass *analysis.Pass) (any, error) {
	f := &finder{pass, map[*types.Func]function{}, map[types.Object]ast.Expr{}, map[*ast.BlockStmt]bool{}, map[token.Pos]bool{}, map[string]bool{}}
	var handlers []function
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, accepted) {
					at := pass.Fset.Position(c.Pos())
					f.accepted[place(at.Filename, at.Line)], f.accepted[place(at.Filename, at.Line+1)] = true, true
				}
			}
		}
		for _, declaration := range file.Decls {
			if d, ok := declaration.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					f.declare(spec, func(of types.Object, value ast.Expr) { f.variables[of] = value })
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if of, ok := pass.TypesInfo.Defs[n.Name].(*types.Func); ok && n.Body != nil {
					f.declared[of] = function{n.Type, n.Body}
					if isHandler(of.Signature()) {
						handlers = append(handlers, f.declared[of])
					}
				}
			case *ast.FuncLit:
				if of, ok := pass.TypesInfo.TypeOf(n).(*types.Signature); ok && isHandler(of) {
					handlers = append(handlers, function{n.Type, n.Body})
				}
			}
			return true
		})
	}
	for _, handler := range handlers {
		f.visit(handler)
	}
	return nil, nil
}

func place(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

// isHandler reports whether a function takes a *webhook.Request and its last result is an error.
func isHandler(of *types.Signature) bool {
	if of.Results().Len() == 0 || !isError(of.Results().At(of.Results().Len()-1).Type()) {
		return false
	}
	for parameter := range of.Params().Variables() {
		pointer, ok := types.Unalias(parameter.Type()).(*types.Pointer)
		if !ok {
			continue
		}
		if named, ok := types.Unalias(pointer.Elem()).(*types.Named); ok && named.Obj().Name() == "Request" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == webhookPackage {
			return true
		}
	}
	return false
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

func isError(t types.Type) bool { return t != nil && types.Implements(t, errorType) }

// declare calls set with each variable that a declaration initializes, and with its initial value.
func (f *finder) declare(spec ast.Spec, set func(of types.Object, value ast.Expr)) {
	v, ok := spec.(*ast.ValueSpec)
	if !ok || len(v.Values) == 0 {
		return
	}
	for i, name := range v.Names {
		if of := f.TypesInfo.Defs[name]; of != nil && (len(v.Names) == len(v.Values) || i == len(v.Names)-1) {
			set(of, v.Values[min(i, len(v.Values)-1)])
		}
	}
}

// visit checks the errors that a function returns, directly or through a variable. It skips the function literals in
// the body. It does not follow the order of the statements, so it checks every value that the body assigns to a
// returned variable.
func (f *finder) visit(of function) {
	if f.visited[of.body] {
		return
	}
	f.visited[of.body] = true
	assigned := values{}
	add := func(of types.Object, value ast.Expr) { assigned[of] = append(assigned[of], value) }
	var returned []ast.Expr
	ast.Inspect(of.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && (len(n.Lhs) == len(n.Rhs) || i == len(n.Lhs)-1) {
					add(f.TypesInfo.ObjectOf(name), n.Rhs[min(i, len(n.Rhs)-1)])
				}
			}
		case *ast.ValueSpec:
			f.declare(n, add)
		case *ast.ReturnStmt:
			if e := lastResult(n, of.typ); e != nil {
				returned = append(returned, e)
			}
		}
		return true
	})
	for _, e := range returned {
		f.check(e, assigned)
	}
}

// lastResult returns the expression for the last result of a return statement. For a bare return, this is the named
// result. It returns nil if there is no result.
func lastResult(n *ast.ReturnStmt, of *ast.FuncType) ast.Expr {
	if len(n.Results) > 0 {
		return n.Results[len(n.Results)-1]
	}
	if of.Results == nil {
		return nil
	}
	if names := of.Results.List[len(of.Results.List)-1].Names; len(names) > 0 {
		return names[len(names)-1]
	}
	return nil
}

// check reports a returned error that was made without another error.
func (f *finder) check(returned ast.Expr, assigned values) {
	switch e := ast.Unparen(returned).(type) {
	case *ast.Ident:
		of := f.TypesInfo.ObjectOf(e)
		from := assigned[of]
		delete(assigned, of) // each value is checked once
		for _, value := range from {
			f.check(value, assigned)
		}
		if value := f.variables[of]; value != nil {
			f.check(value, values{})
		}
	case *ast.CallExpr:
		f.checkCall(e, assigned)
	}
}

func (f *finder) checkCall(call *ast.CallExpr, assigned values) {
	of := f.callee(call)
	if of == nil {
		return
	}
	switch of.FullName() {
	case "errors.Join":
		for _, one := range call.Args {
			f.check(one, assigned)
		}
	case "errors.New":
		f.report(call, "Deny")
	case "fmt.Errorf":
		for _, argument := range call.Args {
			if isError(f.TypesInfo.TypeOf(argument)) { // an error that it wraps
				f.check(argument, assigned)
			}
		}
		f.report(call, "Denyf")
	default:
		// A function that also returns a value answers with the value, so its errors are failures.
		if d, ok := f.declared[of.Origin()]; ok && of.Signature().Results().Len() == 1 {
			f.visit(d)
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

// report reports a call of errors.New or fmt.Errorf. It does not report a call with another error among its arguments,
// because that error means that something failed.
func (f *finder) report(call *ast.CallExpr, denial string) {
	at := f.Fset.Position(call.Pos())
	if f.accepted[place(at.Filename, at.Line)] || f.reported[call.Pos()] {
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
	f.reported[call.Pos()] = true
	d := analysis.Diagnostic{
		Pos: call.Pos(), End: call.End(),
		Message: "this error does not deny the request: it is a failure to decide, so the failurePolicy applies; to deny, return webhook." + denial + "; if it is a failure, add the comment " + accepted,
	}
	if name := f.nameOfWebhook(call.Pos()); name != "" {
		d.SuggestedFixes = []analysis.SuggestedFix{{
			Message:   "return " + name + "." + denial,
			TextEdits: []analysis.TextEdit{{Pos: call.Fun.Pos(), End: call.Fun.End(), NewText: []byte(name + "." + denial)}},
		}}
	}
	f.Report(d)
}

// nameOfWebhook returns the name of package webhook at a position, or "" if the package cannot be named there.
func (f *finder) nameOfWebhook(at token.Pos) string {
	for _, file := range f.Files {
		if at < file.FileStart || at >= file.FileEnd {
			continue
		}
		for _, spec := range file.Imports {
			imported := f.TypesInfo.PkgNameOf(spec)
			if imported == nil || imported.Imported().Path() != webhookPackage {
				continue
			}
			if scope := f.Pkg.Scope().Innermost(at); scope != nil {
				if _, found := scope.LookupParent(imported.Name(), at); found == imported {
					return imported.Name()
				}
			}
		}
	}
	return ""
}
