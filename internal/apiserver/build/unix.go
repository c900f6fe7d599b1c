// SPDX-License-Identifier: Apache-2.0

//go:build unix

package build

import (
	"os/exec"
	"syscall"
)

// ownGroup has cmd and its children end together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}
