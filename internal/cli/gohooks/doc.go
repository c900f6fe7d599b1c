// SPDX-License-Identifier: Apache-2.0

// Package gohooks runs the hooks of a Go package from the command line, in a process of their own, without writing
// into the tree of the package.
//
// The hooks are found by convention. If the package has a function
//
//	func Hooks() []*webhook.Hook
//
// which may return an error as well, its hooks are those that it returns. Else they are what is in exported
// variables of the package that have the type *webhook.Hook, and what exported functions return that have no
// parameters, and *webhook.Hook as their result, or *webhook.Hook and an error: in the order of files and lines.
//
//	var Pull = webhook.Mutating(…)
//	func Quota() (*webhook.Hook, error)
//
// [Build] builds a program of them with the go command, in the module of the package, so that folders named internal
// can be imported and the module's versions apply. The program's source exists in an overlay only. It makes
// configuration objects ([Program.Describe]) and serves the hooks ([Program.Start]), until its standard input ends:
// no process outlives the one that started it, however that ends.
package gohooks
