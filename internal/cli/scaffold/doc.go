// SPDX-License-Identifier: Apache-2.0

// Package scaffold generates webhook projects: [Init] writes a new project, and [Add] adds hooks to an existing one.
//
// The generated files belong to the user, except a few that are derived from the hooks: the list in hooks/hooks.go,
// and the manifests in config that the program prints. Add updates these, creates new files, and changes no others.
//
// hooks/hooks.go lists all hooks in one place. The alternative, a registration by an init function in each file, would
// have three disadvantages: the order of hooks would depend on file names, tests would share instances, and no file
// would show all hooks. Add also extends the list in a file that the user has edited. If the
// function Hooks does not end with a list, Add returns a note with the line to add.
package scaffold
