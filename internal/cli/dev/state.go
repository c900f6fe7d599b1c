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

// A state describes the registrations of a dev process. If the process is killed, the next dev process uses the state
// to remove them.
type state struct {
	// ID is the value of the label of its configuration objects.
	ID  string `json:"id"`
	PID int    `json:"pid"`
	// Server is the URL of the cluster, Context its name in the kubeconfig.
	Server  string `json:"server"`
	Context string `json:"context"`
	// Cluster is the UID of the namespace kube-system, or empty if dev may not read it. Unlike the URL, the UID
	// identifies a cluster.
	Cluster string `json:"cluster,omitempty"`
	// Time is the time of the registration.
	Time time.Time `json:"time"`
}

// A stateFile is a state in the user's state folder. The dev process that has registered the hooks holds a lock on the
// file. So does a dev process that removes leftovers.
type stateFile struct {
	state
	path   string
	unlock func()
}

// stateDir returns the folder of state files, and creates it if it does not exist.
func stateDir() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", problem.New("no state folder is known: %w", err).Hint("export XDG_STATE_HOME=FOLDER")
		}
		dir = filepath.Join(home, ".local", "state")
	}
	dir = filepath.Join(dir, "admitkit", "dev")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", problem.New("cannot create the state folder: %w", err).Hint("export XDG_STATE_HOME=FOLDER")
	}
	return dir, nil
}

// writeState writes and locks a state file. The caller must register the hooks only afterwards.
func writeState(s state) (*stateFile, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	// Until the file is locked, it has another name, so that another dev process does not treat it as abandoned.
	unfinished, path := filepath.Join(dir, "."+s.ID), filepath.Join(dir, s.ID+".json")
	unlock, err := flock.Try(unfinished)
	if err != nil {
		return nil, problem.New("cannot lock the state file: %w", err)
	}
	if err = os.WriteFile(unfinished, text, 0o600); err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		os.Remove(unfinished)
		unlock()
		return nil, problem.New("cannot write the state file: %w", err)
	}
	return &stateFile{s, path, unlock}, nil
}

// release unlocks the file and keeps it for another dev process.
func (f *stateFile) release() { f.unlock() }

// remove removes the file, after the registrations are gone.
func (f *stateFile) remove() error {
	err := os.Remove(f.path)
	f.unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// abandoned locks and returns the state files of dev processes that have ended. The caller must release or remove each.
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
			continue // the dev process has just removed the file, or it is not a state file
		}
		if f.unlock, err = flock.Try(f.path); err == nil {
			all = append(all, f)
		}
	}
	return all, nil
}
