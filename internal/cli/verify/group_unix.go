// SPDX-License-Identifier: Apache-2.0

//go:build unix

package verify

import (
	"os/exec"
	"syscall"
)

// inGroup has a command end with all that it started.
func inGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
