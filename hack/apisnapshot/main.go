// SPDX-License-Identifier: Apache-2.0

// Command apisnapshot compares docs/api with the exported API of the packages below pkg/, so that a review
// shows every change of the API as a change of a text file.
//
// Run it at the root of the repository. Without flags it fails on a difference. With -write it rewrites
// docs/api.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// compare prints the differences between the snapshots in have and want.
func compare(have, want map[string]string, out io.Writer) error {
	names := map[string]bool{}
	for name := range have {
		names[name] = true
	}
	for name := range want {
		names[name] = true
	}
	differs := false
	for _, name := range sorted(names) {
		if have[name] == want[name] {
			continue
		}
		differs = true
		text, err := diff(name, have[name], want[name])
		if err != nil {
			return err
		}
		fmt.Fprint(out, text)
	}
	if differs {
		return errDiffers
	}
	return nil
}

// diff returns a unified diff from git.
func diff(name, have, want string) (string, error) {
	dir, err := os.MkdirTemp("", "apisnapshot")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for side, text := range map[string]string{"docs": have, "code": want} {
		if err := os.MkdirAll(filepath.Join(dir, side), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, side, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("git", "diff", "--no-index", "--no-color", "--no-prefix", "docs/"+name, "code/"+name)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	// git diff exits with 1 if there is a difference.
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		return "", fmt.Errorf("git diff: %w", err)
	}
	return stdout.String(), nil
}
