// SPDX-License-Identifier: Apache-2.0

// Package build finds kube-apiserver, etcd and kubectl on this machine, and builds them from Go
// modules that are pinned and embedded. It imports next to nothing, so that scripts can run it.
package build

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/problem"
)

// Binaries are the names of what there has to be, the one that is built fastest first.
var Binaries = []string{"etcd", "kube-apiserver", "kubectl"}

// Assets is the variable of the environment that names a folder with the binaries.
const Assets = "KUBEBUILDER_ASSETS"

const module = "github.com/admitkit/admitkit"

// A Place is a folder that may hold the binaries.
type Place struct {
	// Name says whose folder it is.
	Name string
	// Dir is the folder.
	Dir string
	// Missing are the binaries that it lacks.
	Missing []string
}

// Places returns where binaries are looked for, in this order: KUBEBUILDER_ASSETS, the cache, and
// what setup-envtest downloaded, newest first.
func Places() ([]Place, error) {
	var all []Place
	if dir := os.Getenv(Assets); dir != "" {
		all = append(all, place(Assets, dir))
	}
	cached, err := Folder()
	if err != nil {
		return nil, err
	}
	all = append(all, place("cache", cached))
	for _, dir := range envtestFolders() {
		all = append(all, place("setup-envtest", dir))
	}
	return all, nil
}

// Find returns the folder with the binaries.
func Find() (string, error) {
	places, err := Places()
	if err != nil {
		return "", err
	}
	for _, p := range places {
		switch {
		case len(p.Missing) == 0:
			return p.Dir, nil
		case p.Name == Assets: // who sets it means it
			return "", incomplete(p)
		}
	}
	return "", problem.New("kube-apiserver, etcd and kubectl are not on this machine").
		Hint("admitkit apiserver install  # builds them, about 5 minutes, once").
		Hint("or set KUBEBUILDER_ASSETS to a folder that has them")
}

func incomplete(p Place) error {
	return problem.New("KUBEBUILDER_ASSETS is %s, which lacks %s", p.Dir, strings.Join(p.Missing, ", ")).
		Hint("unset KUBEBUILDER_ASSETS, and admitkit builds them")
}

// Chosen returns the folder that Build returns, without building: KUBEBUILDER_ASSETS, or the cache.
func Chosen() (string, error) {
	dir := os.Getenv(Assets)
	if dir == "" {
		return Folder()
	}
	if p := place(Assets, dir); len(p.Missing) > 0 {
		return "", incomplete(p)
	}
	return dir, nil
}

// Folder returns where Build puts the binaries: in $ADMITKIT_CACHE, or else in the .cache of the
// checkout of admitkit that we are in, or else in the user's folder for caches.
func Folder() (string, error) {
	if dir := os.Getenv("ADMITKIT_CACHE"); dir != "" {
		dir, err := filepath.Abs(dir)
		return folderIn(dir), err
	}
	if dir := checkout(); dir != "" {
		return folderIn(filepath.Join(dir, ".cache")), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", problem.New("there is no folder for caches: %w", err).Hint("export ADMITKIT_CACHE=FOLDER")
	}
	return folderIn(filepath.Join(dir, "admitkit")), nil
}

// checkout walks up to the folder of admitkit's own module; it returns "" elsewhere.
func checkout() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		if moduleOf(filepath.Join(dir, "go.mod")) == module {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func moduleOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, found := strings.CutPrefix(lines.Text(), "module "); found {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

func place(name, dir string) Place {
	p := Place{Name: name, Dir: dir}
	for _, binary := range Binaries {
		info, err := os.Stat(filepath.Join(dir, binary))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			p.Missing = append(p.Missing, binary)
		}
	}
	return p
}

// envtestFolders returns the folders of setup-envtest for this platform, newest version first.
func envtestFolders() []string {
	base := os.Getenv("XDG_DATA_HOME")
	home, _ := os.UserHomeDir() // without one, the patterns below match nothing
	switch {
	case runtime.GOOS == "darwin":
		base = filepath.Join(home, "Library", "Application Support", "io.kubebuilder.envtest")
	case base != "":
		base = filepath.Join(base, "kubebuilder-envtest")
	default:
		base = filepath.Join(home, ".local", "share", "kubebuilder-envtest")
	}
	found, err := filepath.Glob(filepath.Join(base, "k8s", "*-"+runtime.GOOS+"-"+runtime.GOARCH))
	if err != nil {
		return nil // the pattern is ours, but for what the home folder is called
	}
	slices.SortFunc(found, func(a, b string) int { return compareVersions(filepath.Base(b), filepath.Base(a)) })
	return found
}

// compareVersions compares numbers and dots up to the first dash.
func compareVersions(a, b string) int {
	number := func(text string) []int {
		text, _, _ = strings.Cut(text, "-")
		var all []int
		for part := range strings.SplitSeq(text, ".") {
			n, _ := strconv.Atoi(part) // what is no number comes last
			all = append(all, n)
		}
		return all
	}
	return cmp.Or(slices.Compare(number(a), number(b)), strings.Compare(a, b))
}
