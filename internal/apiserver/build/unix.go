// SPDX-License-Identifier: Apache-2.0

//go:build unix

package build

import (
	"os/exec"
	"syscall"
)

// useProcessGroup runs cmd in a process group of its own. The end of its context interrupts the whole group.
func useProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}
