// SPDX-License-Identifier: Apache-2.0

// Package scratch creates temporary folders. A process that was killed leaves its folder behind, and the next process
// removes it.
package scratch

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/admitkit/admitkit/internal/apiserver/flock"
)

// A Dir is a temporary folder. Call Remove when it is no longer needed.
type Dir struct {
	Path   string
	unlock func()
}

const (
	unfinished = "admitkit-new-"
	lockFile   = "owner.lock"
)

// New creates a folder whose name begins with prefix. The folder is in parent, or in the system's temporary folder if
// parent is empty. New also removes folders with the same prefix whose process has ended.
func New(parent, prefix string) (*Dir, error) {
	parent = cmp.Or(parent, os.TempDir())
	removeLeftovers(parent, prefix)
	// The folder has another name until it is locked, so that no other process takes it for a leftover.
	made, err := os.MkdirTemp(parent, unfinished)
	if err != nil {
		return nil, err
	}
	unlock, err := flock.Try(filepath.Join(made, lockFile))
	if err != nil {
		os.RemoveAll(made)
		return nil, err
	}
	path := filepath.Join(parent, prefix+strings.TrimPrefix(filepath.Base(made), unfinished))
	if err := os.Rename(made, path); err != nil {
		unlock()
		os.RemoveAll(made)
		return nil, err
	}
	return &Dir{path, unlock}, nil
}

// Remove deletes the folder and its contents.
func (d *Dir) Remove() {
	_ = os.RemoveAll(d.Path) // the next process removes the rest
	d.unlock()
}

// removeLeftovers deletes the folders of processes that have ended. It ignores errors, and folders of other users.
func removeLeftovers(parent, prefix string) {
	if !flock.Supported {
		return
	}
	entries, _ := os.ReadDir(parent) // on an error there are no entries
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if _, err := os.Lstat(filepath.Join(path, lockFile)); err != nil {
			continue // not created by New
		}
		unlock, err := flock.Try(filepath.Join(path, lockFile))
		if err != nil {
			continue // in use, or owned by another user
		}
		_ = os.RemoveAll(path)
		unlock()
	}
}
