// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/apiserver/flock"
)

// A dataDir is a folder for all that a server needs: keys, the data of etcd, and for who comes
// after us, should we be killed, a lock that we hold and the ids of the processes.
type dataDir struct {
	path   string
	unlock func()
}

const (
	prefix   = "admitkit-server-"
	lockFile = "owner.lock"
	pidFile  = "pids"
)

func newDataDir() (*dataDir, error) {
	// Nobody takes it for a leftover before it is locked, since it has another name until then.
	unfinished, err := os.MkdirTemp("", "admitkit-new-")
	if err != nil {
		return nil, err
	}
	unlock, err := flock.Try(filepath.Join(unfinished, lockFile))
	if err != nil {
		os.RemoveAll(unfinished)
		return nil, err
	}
	path := filepath.Join(filepath.Dir(unfinished), prefix+strings.TrimPrefix(filepath.Base(unfinished), "admitkit-new-"))
	if err := os.Rename(unfinished, path); err != nil {
		unlock()
		os.RemoveAll(unfinished)
		return nil, err
	}
	return &dataDir{path, unlock}, nil
}

func (d *dataDir) remember(pid int) error {
	f, err := os.OpenFile(filepath.Join(d.path, pidFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, pid)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

func (d *dataDir) remove() error {
	err := os.RemoveAll(d.path)
	d.unlock()
	return err
}

// removeLeftovers ends the processes and removes the data of servers whose program was killed: their
// lock is free. It does what it can; what is somebody else's stays.
func removeLeftovers() {
	if !flock.Tells {
		return
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return // the pattern is ours, but for what the folder is called
	}
	for _, path := range left {
		unlock, err := flock.Try(filepath.Join(path, lockFile))
		if err != nil {
			continue // it is in use, or somebody else's
		}
		ended := true
		for _, pid := range remembered(path) {
			ended = killIf(pid, path) && ended
		}
		if ended {
			os.RemoveAll(path)
		}
		unlock()
	}
}

func remembered(path string) []int {
	text, err := os.ReadFile(filepath.Join(path, pidFile))
	if err != nil {
		return nil // killed before it started one
	}
	var pids []int
	for _, line := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(line); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
