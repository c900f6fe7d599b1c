// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/admitkit/admitkit/internal/problem"
)

// WriteDir writes all files into a folder, or none. It creates the folder if needed. It returns the written paths, and
// in left the paths of files from earlier runs that this set does not replace.
func (s *Set) WriteDir(dir, form string) (written, left []string, err error) {
	files := map[string][]byte{}
	for _, f := range s.files {
		text, err := f.yaml()
		if form == "json" {
			text, err = indented(f.object)
		}
		if err != nil {
			return nil, nil, err
		}
		name := filepath.Join(dir, filepath.FromSlash(f.name)+"."+form)
		files[name] = text
		written = append(written, name)
	}
	if err := writeAll(written, files); err != nil {
		return nil, nil, problem.New("nothing was written: %w", err)
	}
	for _, name := range s.others() {
		for _, extension := range []string{".yaml", ".json"} {
			path := filepath.Join(dir, filepath.FromSlash(name)+extension)
			if _, mine := files[path]; mine {
				continue
			}
			if _, err := os.Lstat(path); err == nil {
				left = append(left, path)
			}
		}
	}
	return written, left, nil
}

// others returns all file names that a set of this form can have.
func (s *Set) others() []string {
	if s.form != Static {
		return []string{"mutating-webhook-configuration", "validating-webhook-configuration"}
	}
	names := []string{"admission-configuration"}
	for _, f := range s.files {
		base := filepath.Base(f.name)
		if base != "admission-configuration" {
			return append(names, "mutating/"+base, "validating/"+base)
		}
	}
	return names
}

// writeAll writes temporary files beside their targets and renames them when all are complete.
func writeAll(order []string, files map[string][]byte) (err error) {
	var undo []func()
	defer func() {
		if err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				undo[i]()
			}
		}
	}()
	temporaries := make([]string, len(order))
	for i, name := range order {
		made, err := makeFolder(filepath.Dir(name))
		undo = append(undo, made...)
		if err != nil {
			return err
		}
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return &fs.PathError{Op: "write", Path: name, Err: errors.New("not a regular file")}
		}
		if temporaries[i], err = temporary(name, files[name]); err != nil {
			return err
		}
		undo = append(undo, func() { _ = os.Remove(temporaries[i]) }) // it may have been renamed
	}
	for i, name := range order {
		if err := os.Rename(temporaries[i], name); err != nil {
			return err
		}
	}
	return nil
}

// makeFolder creates a folder and its parents. It returns functions that undo this.
func makeFolder(dir string) (undo []func(), err error) {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil, nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if undo, err = makeFolder(parent); err != nil {
			return undo, err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return undo, err
	}
	return append(undo, func() { _ = os.Remove(dir) }), nil // it stays if it is no longer empty
}

// temporary writes a file beside name. The new file's name does not end in .yaml, so that no tool reads it as a
// manifest.
func temporary(name string, text []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
