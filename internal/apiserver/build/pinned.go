// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	_ "embed" // for go:embed
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The go.mod and go.sum of a module that requires Kubernetes and etcd at fixed versions. Their names end in .txt
// because go:embed skips folders that have a go.mod.
var (
	//go:embed pinned/go.mod.txt
	goMod string
	//go:embed pinned/go.sum.txt
	goSum string
)

// recipe is part of the name of the cache folder. Change it when the build steps change, so that older binaries are not
// used.
const recipe = "1"

// Version returns the version of Kubernetes that is built, such as v1.36.3.
func Version() string {
	for line := range strings.Lines(goMod) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "k8s.io/kubernetes" {
			return fields[1]
		}
	}
	return ""
}

// folderIn returns the folder of the binaries in a cache. Its name has a hash of the pinned versions.
func folderIn(cache string) string {
	content := sha256.Sum256([]byte(goMod + goSum + recipe))
	name := Version() + "-" + runtime.GOOS + "-" + runtime.GOARCH + "-" + hex.EncodeToString(content[:6])
	return filepath.Join(cache, "apiserver", name, "bin")
}

// packageOf returns the import path of the main package of a binary.
func packageOf(binary string) string {
	if binary == "etcd" {
		return "go.etcd.io/etcd/server/v3"
	}
	return "k8s.io/kubernetes/cmd/" + binary
}

// linkerFlags returns the linker flags that the release build of Kubernetes uses. Without them every component has
// the version v0.0.0-master, which clients and the server treat specially.
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

// writeModule writes the pinned go.mod and go.sum into a folder.
func writeModule(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(goMod), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), []byte(goSum), 0o644)
}
