// SPDX-License-Identifier: Apache-2.0

//go:build unix

package apiserver

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func interrupt(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM) // fails if the process has ended
}

// killIfRunning kills a process, but only if its command line contains text. Otherwise the process id belongs to
// another program by now. It reports whether the process is gone.
func killIfRunning(pid int, text string) bool {
	if !commandHas(pid, text) {
		return true
	}
	if syscall.Kill(pid, syscall.SIGKILL) != nil {
		return false
	}
	gone := time.NewTicker(20 * time.Millisecond)
	defer gone.Stop()
	for range 250 {
		if !commandHas(pid, text) {
			return true
		}
		<-gone.C
	}
	return false
}

func commandHas(pid int, text string) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if errors.Is(err, fs.ErrNotExist) {
		line, _ = exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output() // fails without such a process
	}
	return strings.Contains(string(line), text)
}
