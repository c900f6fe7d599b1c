// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent keeps the terminal's Ctrl-C away, since we end it in order, and has the kernel kill
// it if we are killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
