// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package apiserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent puts cmd into a process group of its own, so that Ctrl-C does not reach it: Stop ends it. These
// systems cannot kill a child when its parent dies.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
