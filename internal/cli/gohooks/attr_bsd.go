// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package gohooks

import (
	"os/exec"
	"syscall"
)

// keep keeps the terminal's Ctrl-C away from a process, which we end in order.
func keep(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
