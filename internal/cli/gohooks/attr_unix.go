// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gohooks

import (
	"os/exec"
	"syscall"
)

// apart keeps the terminal's Ctrl-C away from a process, and from those that it starts: they are told by interrupt,
// when this one knows, too.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func interrupt(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
