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

// settled is how long nothing has to change before it is built: editors write in several steps,
// and other tools many files.
const settled = 200 * time.Millisecond

// A watcher tells when the sources of a package change, those of the packages of its module, and of
// modules in other folders, that it imports among them.
type watcher struct {
	dir, pkg string
	notify   *fsnotify.Watcher
	folders  map[string]bool                 // watched ones; true: every file there counts, since some are embedded; replaced, never changed
	watched  atomic.Pointer[map[string]bool] // the folders again, for run
	sums     map[string][sha256.Size]byte
	changes  chan struct{} // gets one when a source may have changed
}

func newWatcher(ctx context.Context, dir, pkg string) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, problem.New("cannot watch files: %w", err)
	}
	w := &watcher{dir: dir, pkg: pkg, notify: notify, folders: map[string]bool{}, sums: map[string][sha256.Size]byte{}, changes: make(chan struct{}, 1)}
	if err := w.look(ctx, false); err != nil {
		_ = notify.Close() // the first error says more
		return nil, err
	}
	return w, nil
}

func (w *watcher) close() { _ = w.notify.Close() } // it has nothing that could be lost

// run reads what the system notices until close.
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
		case _, open := <-w.notify.Errors: // some were lost
			if !open {
				return
			}
		}
		select {
		case w.changes <- struct{}{}:
		default: // it has been told
		}
	}
}

// concerns reports whether a build may depend on what has changed, so that calls wait for it. A log that is written
// beside the sources is nobody's concern. What is gone may have been a folder.
func (w *watcher) concerns(path string) bool {
	every := false
	if watched := w.watched.Load(); watched != nil {
		every = (*watched)[filepath.Dir(path)]
	}
	if isSource(path, every) {
		return true
	}
	info, err := os.Stat(path)
	return !passing(path) && (err != nil || info.IsDir())
}

// isSource reports whether a build depends on a file of a folder.
func isSource(path string, every bool) bool {
	return !passing(path) && (every || slices.Contains([]string{".go", ".mod", ".sum", ".work", ".c", ".h", ".s"}, filepath.Ext(path)))
}

// await waits until nothing has changed for a moment.
func (w *watcher) await(ctx context.Context) {
	quiet := time.NewTimer(settled)
	defer quiet.Stop()
	for {
		select {
		case <-w.changes:
			quiet.Reset(settled)
		case <-quiet.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// changed reports whether the sources are others than at the last time.
func (w *watcher) changed() bool {
	changed := false
	for dir, every := range w.folders {
		if sum := content(dir, every); sum != w.sums[dir] {
			w.sums[dir], changed = sum, true
		}
	}
	return changed
}

// content sums up the sources in a folder.
func content(dir string, every bool) [sha256.Size]byte {
	sum := sha256.New()
	entries, _ := os.ReadDir(dir) // if it is gone, so are its files
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

// passing reports whether a file is an editor's, or a test's: no build depends on it.
func passing(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, "_test.go") || name == "4913" // vim tries whether it can write
}

// look finds the folders to watch. After a build that failed a package may be missing, and nobody
// knows where it will be: then all folders of the module are watched.
func (w *watcher) look(ctx context.Context, everywhere bool) error {
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
			_ = w.notify.Remove(dir) // it may be gone
			delete(w.sums, dir)
		}
	}
	w.folders = folders
	w.watched.Store(&folders)
	return nil
}

// addAll adds the folders below a module's, but not too many.
func addAll(folders map[string]bool, root string) {
	const most = 1000
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error { // what cannot be read is left out
		switch {
		case err != nil || !entry.IsDir():
			return nil
		case path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "vendor" || entry.Name() == "node_modules" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case len(folders) >= most:
			return filepath.SkipAll
		}
		if _, there := folders[path]; !there {
			folders[path] = false
		}
		return nil
	})
}

// list asks the go command for the folders of all packages that are not in the module cache.
func (w *watcher) list(ctx context.Context) (folders map[string]bool, root string, err error) {
	dir, pkg := w.dir, w.pkg
	if info, statErr := os.Stat(filepath.Join(dir, pkg)); statErr == nil && info.IsDir() { // it may be in a module of its own
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
			return nil, "", problem.New("cannot read what go list says: %w", err)
		}
		local := p.Module != nil && (p.Module.Main || p.Module.Replace != nil && p.Module.Replace.Version == "")
		if p.Dir == "" || p.Standard || !local {
			continue
		}
		add(folders, p.Dir, false)
		for _, file := range p.EmbedFiles {
			add(folders, filepath.Dir(filepath.Join(p.Dir, file)), true)
		}
		add(folders, p.Module.Dir, false) // for go.mod
		if p.Module.Main {
			root = p.Module.Dir
		}
	}
}

func add(folders map[string]bool, dir string, every bool) { folders[dir] = folders[dir] || every }
