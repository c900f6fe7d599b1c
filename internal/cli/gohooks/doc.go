// SPDX-License-Identifier: Apache-2.0

// Package gohooks runs the hooks of a Go package from the command line, in a separate process. It writes nothing into
// the folder of the package.
//
// The hooks are found by convention. If the package has this function, which may also return an error, its result is
// the hooks:
//
//	func Hooks() []*webhook.Hook
//
// Otherwise the hooks are the exported variables of type *webhook.Hook, and the results of exported functions that have
// no parameters and return *webhook.Hook, or *webhook.Hook and an error. They keep the order of the source.
//
//	var Pull = webhook.Mutating(…)
//	func Quota() (*webhook.Hook, error)
//
// [Build] builds a program with the go command, in the module of the package. The program can therefore import internal
// packages, and is built with the dependency versions of that module. The source of the program exists only in an
// overlay. The program prints the configuration objects ([Program.Describe]) or serves the hooks ([Program.Start]). It
// ends when its standard input ends, so it never outlives the process that started it.
package gohooks
