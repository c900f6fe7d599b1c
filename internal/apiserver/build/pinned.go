// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	_ "embed" // the pins
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The pins are a module of their own: a go.mod and a go.sum. They have another ending since the go
// command leaves folders out that have a go.mod, and go:embed with it.
var (
	//go:embed pinned/go.mod.txt
	goMod string
	//go:embed pinned/go.sum.txt
	goSum string
)

// recipe counts the changes of how things are built, so that nobody uses what was built otherwise.
const recipe = "1"

// Version is that of the Kubernetes that is built, such as v1.36.3.
func Version() string {
	for line := range strings.Lines(goMod) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "k8s.io/kubernetes" {
			return fields[1]
		}
	}
	return ""
}

// folderIn returns where in a cache the binaries are. What is pinned is part of the name.
func folderIn(cache string) string {
	content := sha256.Sum256([]byte(goMod + goSum + recipe))
	name := Version() + "-" + runtime.GOOS + "-" + runtime.GOARCH + "-" + hex.EncodeToString(content[:6])
	return filepath.Join(cache, "apiserver", name, "bin")
}

// packageOf names the package of a binary.
func packageOf(binary string) string {
	if binary == "etcd" {
		return "go.etcd.io/etcd/server/v3"
	}
	return "k8s.io/kubernetes/cmd/" + binary
}

// linkerFlags are those that Kubernetes' own release build uses. Without them every component says
// v0.0.0-master, which clients and the server treat specially.
func linkerFlags() string {
	version := Version()
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	flags := []string{"-s", "-w"}
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, set := range []string{"gitVersion=" + version, "gitMajor=" + parts[0], "gitMinor=" + parts[1], "gitCommit=", "gitTreeState=clean"} {
			flags = append(flags, "-X", p+"."+set)
		}
	}
	return strings.Join(flags, " ")
}

// writeModule writes the pins as the module that they are.
func writeModule(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(goMod), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), []byte(goSum), 0o644)
}
