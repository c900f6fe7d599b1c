// SPDX-License-Identifier: Apache-2.0

// Package scratch makes temporary folders that do not outlive their process for long: what one leaves that is killed,
// the next one removes.
package scratch

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/admitkit/admitkit/internal/apiserver/flock"
)

// A Dir is a temporary folder. Remove it.
type Dir struct {
	Path   string
	unlock func()
}

const (
	unfinished = "admitkit-new-"
	lockFile   = "owner.lock"
)

// New makes a folder of which the name begins with prefix in parent, or in the system's for what is temporary, and
// removes those there of the same prefix whose process is gone.
func New(parent, prefix string) (*Dir, error) {
	parent = cmp.Or(parent, os.TempDir())
	removeLeftovers(parent, prefix)
	// Nobody takes it for a leftover before it is locked, since it has another name until then.
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

// Remove removes the folder.
func (d *Dir) Remove() {
	_ = os.RemoveAll(d.Path) // what stays the next one removes
	d.unlock()
}

// removeLeftovers does what it can; what is somebody else's stays.
func removeLeftovers(parent, prefix string) {
	if !flock.Supported {
		return
	}
	entries, _ := os.ReadDir(parent) // none is empty
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if _, err := os.Lstat(filepath.Join(path, lockFile)); err != nil {
			continue // not made here
		}
		unlock, err := flock.Try(filepath.Join(path, lockFile))
		if err != nil {
			continue // it is in use, or somebody else's
		}
		_ = os.RemoveAll(path)
		unlock()
	}
}
