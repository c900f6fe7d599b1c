// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes webhook projects: [Init] a new one, [Add] hooks for one that is there.
//
// What is written belongs to the user from then on, but for a few files, which follow from the hooks: the list in
// hooks/hooks.go, and what the program prints into config. Add writes these again; it makes new files besides,
// and changes no other.
//
// The list is a file that is regenerated, and not one registration in each file, because then it would have
// to be a package variable that init functions fill: hooks in an order of file names, the same instances in all
// tests, and nothing to read that says which hooks there are. Written again, it has every function of the package
// that has no parameters and returns a *webhook.Hook. If the file is not what would be written for the hooks that
// are there, somebody has edited it: it is left alone, and the user is told which line to add.
package scaffold
