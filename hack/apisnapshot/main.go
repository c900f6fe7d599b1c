// SPDX-License-Identifier: Apache-2.0

// Command apisnapshot compares docs/api with the exported API of the packages below pkg/, so that a review
// shows every change of the API as a change of a text file.
//
// Run it at the root of the repository. Without flags it fails on a difference. With -write it rewrites
// docs/api.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

func main() {
	write := flag.Bool("write", false, "rewrite docs/api instead of comparing")
	flag.Parse()
	if err := run(".", *write, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "apisnapshot:", err)
		os.Exit(1)
	}
}

// run compares or rewrites the snapshots of the repository at root.
func run(root string, write bool, out io.Writer) error {
	want, err := snapshots(filepath.Join(root, "pkg"))
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "docs", "api")
	have, err := readAll(dir)
	if err != nil {
		return err
	}
	if write {
		return writeAll(dir, have, want)
	}
	return compare(have, want, out)
}

// snapshots describes every package below dir, keyed by snapshot name. For example, pkg/webhook is
// webhook.txt and pkg/certs/certstest is certs-certstest.txt.
func snapshots(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "internal" || name == "testdata" {
			return fs.SkipDir
		}
		text, err := describe(path)
		if err != nil || text == "" {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		all[strings.ReplaceAll(filepath.ToSlash(rel), "/", "-")+".txt"] = text
		return nil
	})
	return all, err
}

func readAll(dir string) (map[string]string, error) {
	all := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all[filepath.Base(path)] = string(text)
	}
	return all, nil
}

func writeAll(dir string, have, want map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	for name, text := range want {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var errDiffers = errors.New("docs/api differs from the exported API; check the difference, run 'make api', and commit it with a line in CHANGELOG.md")

// compare prints the differences between the snapshots in have and want as unified diffs.
func compare(have, want map[string]string, out io.Writer) error {
	names := maps.Clone(have)
	maps.Copy(names, want)
	differs := false
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if text := diff.Diff("docs/"+name, []byte(have[name]), "code/"+name, []byte(want[name])); text != nil {
			differs = true
			fmt.Fprintf(out, "%s", text)
		}
	}
	if differs {
		return errDiffers
	}
	return nil
}
