// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"os/exec"
	"syscall"
)

// setAttributes puts the process into its own process group, so that Ctrl-C does not end it before its calls are done.
// The kernel kills the process if its parent dies: a package that hangs in an init function does not notice the end of
// its standard input.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
