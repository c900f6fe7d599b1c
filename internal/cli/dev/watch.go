// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/admitkit/admitkit/internal/problem"
)

// quietPeriod is how long dev waits after the last change of a file before it builds. Editors save in several steps,
// and other tools change many files.
const quietPeriod = 200 * time.Millisecond

// A watcher watches the sources of a package and of the packages that it depends on, except those in the standard
// library and in the module cache.
type watcher struct {
	dir, pkg string
	notify   *fsnotify.Watcher
	folders  map[string]bool                 // watched folders; true if all files count, because some are embedded; replaced, never modified
	watched  atomic.Pointer[map[string]bool] // the same map, for run
	sums     map[string][sha256.Size]byte    // hashes of the sources, by folder
	changes  chan struct{}                   // receives a value when a source may have changed
}

func newWatcher(ctx context.Context, dir, pkg string) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, problem.New("cannot watch files: %w", err)
	}
	w := &watcher{dir: dir, pkg: pkg, notify: notify, folders: map[string]bool{}, sums: map[string][sha256.Size]byte{}, changes: make(chan struct{}, 1)}
	if err := w.updateFolders(ctx, false); err != nil {
		_ = notify.Close() // its error matters less than err
		return nil, err
	}
	return w, nil
}

func (w *watcher) close() { _ = w.notify.Close() } // nothing can be lost

// run reports changes of sources on w.changes until close.
func (w *watcher) run() {
	for {
		select {
		case event, open := <-w.notify.Events:
			if !open {
				return
			}
			if event.Op == fsnotify.Chmod || !w.concerns(event.Name) {
				continue
			}
		case _, open := <-w.notify.Errors: // events may be lost, so report a change
			if !open {
				return
			}
		}
		select {
		case w.changes <- struct{}{}:
		default: // a change is pending already
		}
	}
}

// concerns reports whether a build may depend on a changed path. A path that no longer exists may have been a folder.
func (w *watcher) concerns(path string) bool {
	every := false
	if watched := w.watched.Load(); watched != nil {
		every = (*watched)[filepath.Dir(path)]
	}
	if isSource(path, every) {
		return true
	}
	info, err := os.Stat(path)
	return !isIgnored(path) && (err != nil || info.IsDir())
}

// isSource reports whether a build depends on a file. every is true for folders with embedded files.
func isSource(path string, every bool) bool {
	return !isIgnored(path) && (every || slices.Contains([]string{".go", ".mod", ".sum", ".work", ".c", ".h", ".s"}, filepath.Ext(path)))
}

// awaitQuiet waits until no source has changed for quietPeriod.
func (w *watcher) awaitQuiet(ctx context.Context) {
	quiet := time.NewTimer(quietPeriod)
	defer quiet.Stop()
	for {
		select {
		case <-w.changes:
			quiet.Reset(quietPeriod)
		case <-quiet.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// changed reports whether the sources have changed since the last call.
func (w *watcher) changed() bool {
	changed := false
	for dir, every := range w.folders {
		if sum := content(dir, every); sum != w.sums[dir] {
			w.sums[dir], changed = sum, true
		}
	}
	return changed
}

// content returns a hash of the sources in a folder.
func content(dir string, every bool) [sha256.Size]byte {
	sum := sha256.New()
	entries, _ := os.ReadDir(dir) // a missing folder has no files
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if entry.IsDir() || !isSource(path, every) {
			continue
		}
		if text, err := os.ReadFile(path); err == nil {
			one := sha256.Sum256(text)
			_, _ = io.WriteString(sum, path+"\x00"+string(one[:])) // never fails
		}
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// isIgnored reports whether a file is temporary, hidden or a test, so that no build depends on it.
func isIgnored(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, "_test.go") || name == "4913" // vim creates this file to test whether it can write
}

// updateFolders updates the folders to watch. With everywhere, it watches all folders of the main module: after a
// failed build, the folder of a missing package is unknown.
func (w *watcher) updateFolders(ctx context.Context, everywhere bool) error {
	folders, root, err := w.list(ctx)
	if err != nil {
		return err
	}
	if everywhere && root != "" {
		addAll(folders, root)
	}
	for dir, every := range folders {
		if _, watched := w.folders[dir]; watched {
			continue
		}
		if err := w.notify.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return problem.New("cannot watch %s: %w", dir, err)
		}
		w.sums[dir] = content(dir, every)
	}
	for dir := range w.folders {
		if _, wanted := folders[dir]; !wanted {
			_ = w.notify.Remove(dir) // the folder may not exist any more
			delete(w.sums, dir)
		}
	}
	w.folders = folders
	w.watched.Store(&folders)
	return nil
}

// addAll adds the folders of a module, up to 1000 folders in total. It skips unreadable folders.
func addAll(folders map[string]bool, root string) {
	const maxFolders = 1000
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error { // never returns an error
		switch {
		case err != nil || !entry.IsDir():
			return nil
		case path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "vendor" || entry.Name() == "node_modules" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case len(folders) >= maxFolders:
			return filepath.SkipAll
		}
		if _, there := folders[path]; !there {
			folders[path] = false
		}
		return nil
	})
}

// list returns the folders of all packages outside the module cache, from "go list", and the root of the main module.
func (w *watcher) list(ctx context.Context) (folders map[string]bool, root string, err error) {
	dir, pkg := w.dir, w.pkg
	if info, statErr := os.Stat(filepath.Join(dir, pkg)); statErr == nil && info.IsDir() { // the folder may be in another module
		dir, pkg = filepath.Join(dir, pkg), "."
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-deps", "-json=Dir,EmbedFiles,Standard,Module", "--", pkg)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, "", problem.New("go list: %w", err)
	}
	folders = map[string]bool{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir        string
			EmbedFiles []string
			Standard   bool
			Module     *struct {
				Dir, Version string
				Main         bool
				Replace      *struct{ Version string }
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return folders, root, nil
		} else if err != nil {
			return nil, "", problem.New("cannot decode the output of go list: %w", err)
		}
		local := p.Module != nil && (p.Module.Main || p.Module.Replace != nil && p.Module.Replace.Version == "")
		if p.Dir == "" || p.Standard || !local {
			continue
		}
		add(folders, p.Dir, false)
		for _, file := range p.EmbedFiles {
			add(folders, filepath.Dir(filepath.Join(p.Dir, file)), true)
		}
		add(folders, p.Module.Dir, false) // the folder of go.mod
		if p.Module.Main {
			root = p.Module.Dir
		}
	}
}

func add(folders map[string]bool, dir string, every bool) { folders[dir] = folders[dir] || every }
