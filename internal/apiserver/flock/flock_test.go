// SPDX-License-Identifier: Apache-2.0

//go:build unix

package flock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestLockHasOneOwner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := Try(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(file); !errors.Is(err, ErrHeld) {
		t.Errorf("got %v, want %v", err, ErrHeld)
	}
	waited := 0
	next, err := Wait(t.Context(), file, func() { waited++; unlock() })
	if err != nil || waited != 1 {
		t.Fatalf("waited %d times, %v", waited, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Wait(ctx, file, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	next()
	if again, err := Try(file); err != nil {
		t.Errorf("the lock is free: %v", err)
	} else {
		again()
	}
	if _, err := Try(filepath.Join(t.TempDir(), "no", "folder")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("got %v, want an error other than ErrHeld: the folder does not exist", err)
	}
}
