// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/apiserver/flock"
	"github.com/admitkit/admitkit/internal/problem"
)

// A state is what the next dev has to know of one that is killed.
type state struct {
	// ID is the value of the label of its configuration objects.
	ID  string `json:"id"`
	PID int    `json:"pid"`
	// Server is the URL of the cluster, Context its name in the kubeconfig.
	Server  string `json:"server"`
	Context string `json:"context"`
	// Cluster is the UID of the namespace kube-system, if we were let see it: URLs of a cluster change, and one URL is of
	// many clusters in turn.
	Cluster string `json:"cluster,omitempty"`
	// Time is when it was written.
	Time time.Time `json:"time"`
}

// A stateFile is a state in the user's folder for such, locked by the dev that it is of, or by us.
type stateFile struct {
	state
	path   string
	unlock func()
}

// stateDir is the folder, which is made if it is not there.
func stateDir() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", problem.New("there is no folder for state: %w", err).Hint("export XDG_STATE_HOME=FOLDER")
		}
		dir = filepath.Join(home, ".local", "state")
	}
	dir = filepath.Join(dir, "admitkit", "dev")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", problem.New("cannot note what is registered: %w", err).Hint("export XDG_STATE_HOME=FOLDER")
	}
	return dir, nil
}

// writeState notes that we are about to register.
func writeState(s state) (*stateFile, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	// Nobody takes it for abandoned before it is locked, since it has another name until then.
	unfinished, path := filepath.Join(dir, "."+s.ID), filepath.Join(dir, s.ID+".json")
	unlock, err := flock.Try(unfinished)
	if err != nil {
		return nil, problem.New("cannot note what is registered: %w", err)
	}
	if err = os.WriteFile(unfinished, text, 0o600); err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		os.Remove(unfinished)
		unlock()
		return nil, problem.New("cannot note what is registered: %w", err)
	}
	return &stateFile{s, path, unlock}, nil
}

// release leaves the note to others.
func (f *stateFile) release() { f.unlock() }

// remove removes the note: nothing is registered any more.
func (f *stateFile) remove() error {
	err := os.Remove(f.path)
	f.unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// abandoned returns the notes whose dev is gone, and locks them: release or remove each.
func abandoned() ([]*stateFile, error) {
	dir, err := stateDir()
	if err != nil || !flock.Supported {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*stateFile
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") || filepath.Ext(entry.Name()) != ".json" {
			continue
		}
		f := &stateFile{path: filepath.Join(dir, entry.Name())}
		text, err := os.ReadFile(f.path)
		if err != nil || json.Unmarshal(text, &f.state) != nil || f.ID == "" {
			continue // its dev has ended just now, or it is no note of ours
		}
		if f.unlock, err = flock.Try(f.path); err == nil {
			all = append(all, f)
		}
	}
	return all, nil
}
