// SPDX-License-Identifier: Apache-2.0

//go:build !unix

// Package flock locks files for as long as a process lives, however it ends.
package flock

import "context"

// Tells reports whether a lock that is free tells that its owner is gone. Where files are not locked it does not.
const Tells = false

// Try does nothing.
func Try(string) (unlock func(), err error) { return func() {}, nil }

// Wait does nothing.
func Wait(context.Context, string, func()) (unlock func(), err error) { return func() {}, nil }
