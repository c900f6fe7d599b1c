// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

const allPinned = "internal/apiserver/build/pinned"

var kubernetes = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v1\.(\S+)`)

// update copies the pinned go.mod and go.sum of a release into a temporary module, changes and tidies them with the go
// command, and copies them back. One of the modules is k8s.io/kubernetes, whose version names the release.
func update(ctx context.Context, modules []string) error {
	var pinned string
	for _, m := range modules {
		if version, found := strings.CutPrefix(m, "k8s.io/kubernetes@"); found {
			pinned = filepath.Join(allPinned, version[:max(strings.LastIndexByte(version, '.'), 0)])
		}
	}
	if pinned == "" {
		return problem.New("no module is k8s.io/kubernetes: it names the release").Hint("--update k8s.io/kubernetes@v1.36.3 MODULE@VERSION")
	}
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
	for _, args := range [][]string{append([]string{"get"}, modules...), {"mod", "tidy"}, {"mod", "verify"}} {
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
