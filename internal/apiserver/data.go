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

// A dataDir is the folder of one server: keys and the data of etcd. A lock and the process ids in it let a later
// program clean up if this one is killed.
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
	// Until the folder is locked it has another prefix, so that removeLeftovers in another program skips it.
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

// recordPID adds a process id to the folder.
func (d *dataDir) recordPID(pid int) error {
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

// remove removes the folder. It renames the folder first: otherwise removeLeftovers in another program could create the
// lock file again after it was removed, and the folder would not be empty.
func (d *dataDir) remove() error {
	path := filepath.Join(filepath.Dir(d.path), "admitkit-old-"+strings.TrimPrefix(filepath.Base(d.path), prefix))
	if os.Rename(d.path, path) != nil {
		path = d.path // not every system renames a folder with open files
	}
	err := os.RemoveAll(path)
	d.unlock()
	return err
}

// removeLeftovers ends the processes and removes the data of servers whose program was killed. Their locks are free,
// because the kernel unlocks the files of a killed program. It ignores errors, such as those for folders of other
// users.
func removeLeftovers() {
	if !flock.Supported {
		return
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return // the name of the temporary folder makes the pattern invalid
	}
	for _, path := range left {
		unlock, err := flock.Try(filepath.Join(path, lockFile))
		if err != nil {
			continue // the folder is in use, or belongs to another user
		}
		ended := true
		for _, pid := range recordedPIDs(path) {
			ended = killIfRunning(pid, path) && ended
		}
		if ended {
			os.RemoveAll(path)
		}
		unlock()
	}
}

func recordedPIDs(path string) []int {
	text, err := os.ReadFile(filepath.Join(path, pidFile))
	if err != nil {
		return nil // the program was killed before it started a process
	}
	var pids []int
	for _, line := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(line); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
