// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"os/exec"
	"syscall"
)

// keep keeps the terminal's Ctrl-C away from a process, which we end in order, and has the kernel kill it if we are
// killed: a package that hangs while it is initialized does not see its standard input end.
func keep(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
