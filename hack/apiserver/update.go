// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const allPinned = "internal/apiserver/build/pinned"

var kubernetes = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v1\.(\S+)`)

// update copies the pinned go.mod and go.sum of a release into a temporary module, changes and tidies them with the go
// command, and copies them back.
func update(ctx context.Context, release string, modules []string) error {
	pinned := filepath.Join(allPinned, release)
	dir, err := os.MkdirTemp("", "admitkit-pinned-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	mod, err := os.ReadFile(filepath.Join(pinned, "go.mod.txt"))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(pinned, "go.sum.txt"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), staging(mod, modules), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644); err != nil {
		return err
	}
	steps := [][]string{{"mod", "tidy"}, {"mod", "verify"}}
	if len(modules) > 0 {
		steps = append([][]string{append([]string{"get"}, modules...)}, steps...)
	}
	for _, args := range steps {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(pinned, name+".txt"), text, 0o644); err != nil {
			return err
		}
	}
	say("wrote %s", pinned)
	return nil
}

// staging sets the staging modules of Kubernetes to the new version: v0.37.2 for kubernetes v1.37.2.
func staging(mod []byte, modules []string) []byte {
	old := kubernetes.FindSubmatch(mod)
	for _, m := range modules {
		if version, found := strings.CutPrefix(m, "k8s.io/kubernetes@v1."); found && old != nil {
			mod = []byte(strings.ReplaceAll(string(mod), " v0."+string(old[1])+"\n", " v0."+version+"\n"))
		}
	}
	return mod
}
