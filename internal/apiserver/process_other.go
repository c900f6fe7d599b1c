// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package apiserver

import "os/exec"

func interrupt(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // fails if the process has ended
}

func killIfRunning(int, string) bool { return false }

func dieWithParent(*exec.Cmd) {}
