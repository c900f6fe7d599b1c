// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package apiserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent keeps the terminal's Ctrl-C away, since we end it in order.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
