// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

// pinned has a folder for each release of Kubernetes, such as v1.36, with the go.mod and go.sum of a module that requires
// Kubernetes and etcd at fixed versions. Their names end in .txt because go:embed skips folders that have a go.mod.
//
//go:embed pinned
var pinned embed.FS

// Kubernetes is the environment variable that chooses a release, such as 1.36.
const Kubernetes = "ADMITKIT_KUBERNETES"

// standard is the release that is built unless the user chooses another one.
const standard = "v1.36"

// recipe is part of the name of the cache folder. Change it when the build steps change, so that older binaries are not
// used.
const recipe = "1"

// A Release is a version of Kubernetes that Build can build.
type Release struct{ goMod, goSum string }

// Releases returns all releases, newest first.
func Releases() []Release {
	folders, err := pinned.ReadDir("pinned")
	if err != nil {
		panic(err) // the folder is embedded
	}
	var all []Release
	for _, f := range folders {
		all = append(all, Release{embedded(f.Name(), "go.mod.txt"), embedded(f.Name(), "go.sum.txt")})
	}
	slices.SortFunc(all, func(a, b Release) int { return compareVersions(b.Version()[1:], a.Version()[1:]) })
	return all
}

func embedded(folder, name string) string {
	text, err := pinned.ReadFile(path.Join("pinned", folder, name))
	if err != nil {
		panic(err) // a test reads all files
	}
	return string(text)
}

// Choose returns a release by its minor version, such as 1.36, or its whole version. The empty name is the release that
// ADMITKIT_KUBERNETES names, or otherwise the default.
func Choose(name string) (Release, error) {
	name = cmp.Or(name, os.Getenv(Kubernetes), standard)
	var versions []string
	for _, r := range Releases() {
		if v := r.Version(); name == v || "v"+name == v || strings.HasPrefix(v, "v"+strings.TrimPrefix(name, "v")+".") && strings.Count(name, ".") == 1 {
			return r, nil
		}
		versions = append(versions, r.Version())
	}
	return Release{}, problem.New("Kubernetes %s cannot be built: the versions that can are %s", name, strings.Join(versions, ", ")).
		Hint("--kubernetes %s", strings.TrimPrefix(standard, "v")).
		Hint("or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl of this version")
}

// Default returns the release that is built unless the user chooses another one.
func Default() Release {
	r, err := Choose(standard)
	if err != nil {
		panic(err) // a test chooses it
	}
	return r
}

// Version returns the version of Kubernetes, such as v1.36.3.
func (r Release) Version() string {
	for line := range strings.Lines(r.goMod) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "k8s.io/kubernetes" {
			return fields[1]
		}
	}
	return ""
}

// folderIn returns the folder of the binaries in a cache. Its name has a hash of the pinned versions.
func (r Release) folderIn(cache string) string {
	content := sha256.Sum256([]byte(r.goMod + r.goSum + recipe))
	name := r.Version() + "-" + runtime.GOOS + "-" + runtime.GOARCH + "-" + hex.EncodeToString(content[:6])
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
func (r Release) linkerFlags() string {
	version := r.Version()
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
func (r Release) writeModule(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(r.goMod), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), []byte(r.goSum), 0o644)
}
