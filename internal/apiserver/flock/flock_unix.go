// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package flock locks files for as long as a process lives, however it ends.
package flock

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Tells reports whether a lock that is free tells that its owner is gone. Where files are not locked it does not.
const Tells = true

// ErrHeld is returned for a lock that somebody else has.
var ErrHeld = errors.New("the lock is held")

// Try takes the lock of a file, which is made if it is not there.
func Try(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // which unlocks it
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

// Wait is Try that waits for the lock, and calls waiting once if it has to.
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
