// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package gohooks

import (
	"os/exec"
	"syscall"
)

// setAttributes puts the process into its own process group, so that Ctrl-C does not end it before its calls are done.
func setAttributes(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
