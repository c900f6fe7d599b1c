// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets the kernel kill cmd if this program is killed. It also puts cmd into a process group of its own,
// so that Ctrl-C does not reach it: Stop ends it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
