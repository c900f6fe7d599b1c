// SPDX-License-Identifier: Apache-2.0

//go:build unix

package build

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// lock takes the lock of a file, and calls wait first if somebody else has it.
func lock(ctx context.Context, file string, wait func()) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for said := false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // which unlocks it
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close() // nothing was written
			return nil, err
		}
		if !said {
			wait()
			said = true
		}
		select {
		case <-ctx.Done():
			_ = f.Close() // nothing was written
			return nil, context.Cause(ctx)
		case <-again.C:
		}
	}
}

// ownGroup has cmd and its children end together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}
