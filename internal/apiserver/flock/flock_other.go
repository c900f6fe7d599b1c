// SPDX-License-Identifier: Apache-2.0

//go:build !unix

// Package flock locks files. A lock lasts until the locking process ends, even if the process is killed.
package flock

import "context"

// Supported reports whether this system has file locks. Without them, Try and Wait always succeed.
const Supported = false

// Try locks nothing and never fails, because this system has no file locks.
func Try(string) (unlock func(), err error) { return func() {}, nil }

// Wait locks nothing and never fails, because this system has no file locks.
func Wait(context.Context, string, func()) (unlock func(), err error) { return func() {}, nil }
