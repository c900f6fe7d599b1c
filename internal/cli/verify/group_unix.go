// SPDX-License-Identifier: Apache-2.0

//go:build unix

package verify

import (
	"os/exec"
	"syscall"
)

// inGroup changes a command so that the end of its context kills the command and all processes that it started.
func inGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
