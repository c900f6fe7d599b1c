// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gohooks

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the process and its children into their own process group. Ctrl-C does not reach them; interrupt ends
// them.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func interrupt(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
