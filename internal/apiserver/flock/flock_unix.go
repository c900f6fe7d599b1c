// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package flock locks files. A lock lasts until the locking process ends, even if the process is killed.
package flock

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Supported reports whether this system has file locks. Without them, Try and Wait always succeed.
const Supported = true

// ErrHeld is the error of Try for a lock that another owner holds.
var ErrHeld = errors.New("the lock is held")

// Try takes the lock of a file and creates the file if it does not exist. It does not wait.
func Try(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // closing the file unlocks it
		case errors.Is(err, syscall.EINTR):
			continue
		}
		_ = f.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, err
	}
}

// Wait takes the lock of a file like Try, but waits until the lock is free or ctx ends. It calls waiting once if the
// lock is held.
func Wait(ctx context.Context, file string, waiting func()) (unlock func(), err error) {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for said := false; ; said = true {
		if unlock, err = Try(file); !errors.Is(err, ErrHeld) {
			return unlock, err
		}
		if !said {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-again.C:
		}
	}
}
