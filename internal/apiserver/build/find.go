// SPDX-License-Identifier: Apache-2.0

// Package build finds kube-apiserver, etcd and kubectl on this machine, and builds them from Go modules whose
// versions it embeds. It imports nothing from Kubernetes, so that "go run ./hack/apiserver" starts at once.
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

	"github.com/admitkit/admitkit/internal/problem"
)

// Binaries lists the names of the binaries, in the order in which they are built.
var Binaries = []string{"etcd", "kube-apiserver", "kubectl"}

// Assets is the environment variable that names a folder with the binaries.
const Assets = "KUBEBUILDER_ASSETS"

const module = "github.com/admitkit/admitkit"

// A Candidate is a folder that may hold the binaries.
type Candidate struct {
	// Source is Assets, "cache" or "setup-envtest".
	Source string
	// Dir is the path of the folder.
	Dir string
	// Missing lists the binaries that the folder lacks.
	Missing []string
}

// Candidates returns the folders that Find searches for a release, in this order: KUBEBUILDER_ASSETS, the cache, and the
// downloads of setup-envtest, newest first. The release is named as for Choose. If its name is not empty,
// KUBEBUILDER_ASSETS and downloads of other releases are not used.
func Candidates(kubernetes string) ([]Candidate, error) {
	var all []Candidate
	if dir := os.Getenv(Assets); dir != "" && kubernetes == "" {
		all = append(all, inspect(Assets, dir))
	}
	release, err := Choose(kubernetes)
	if err != nil {
		return nil, err
	}
	cached, err := release.folder()
	if err != nil {
		return nil, err
	}
	all = append(all, inspect("cache", cached))
	minor := release.Version()[1 : strings.LastIndex(release.Version(), ".")+1] // such as "1.36."
	for _, dir := range envtestFolders() {
		if kubernetes+os.Getenv(Kubernetes) == "" || strings.HasPrefix(filepath.Base(dir), minor) {
			all = append(all, inspect("setup-envtest", dir))
		}
	}
	return all, nil
}

// Find returns the first candidate for a release that has all binaries. The release is named as for Choose. Find fails if
// KUBEBUILDER_ASSETS names a folder that lacks one.
func Find(kubernetes string) (string, error) {
	candidates, err := Candidates(kubernetes)
	if err != nil {
		return "", err
	}
	for _, c := range candidates {
		switch {
		case len(c.Missing) == 0:
			return c.Dir, nil
		case c.Source == Assets: // an explicit setting has no fallback
			return "", incomplete(c)
		}
	}
	flag, version := "", ""
	if kubernetes != "" {
		flag, version = " --kubernetes "+kubernetes, " of Kubernetes "+kubernetes
	}
	return "", problem.New("kube-apiserver, etcd and kubectl%s are not on this machine", version).
		Hint("admitkit apiserver install%s  # builds them, about 5 minutes, once", flag).
		Hint("or set KUBEBUILDER_ASSETS to a folder that has them")
}

func incomplete(c Candidate) error {
	return problem.New("KUBEBUILDER_ASSETS is %s, which lacks %s", c.Dir, strings.Join(c.Missing, ", ")).
		Hint("unset KUBEBUILDER_ASSETS  # admitkit then builds the binaries")
}

// Target returns the folder that Build would return: KUBEBUILDER_ASSETS, or else the cache. It builds nothing.
func Target(kubernetes string) (string, error) {
	dir := os.Getenv(Assets)
	if dir == "" || kubernetes != "" {
		release, err := Choose(kubernetes)
		if err != nil {
			return "", err
		}
		return release.folder()
	}
	if c := inspect(Assets, dir); len(c.Missing) > 0 {
		return "", incomplete(c)
	}
	return dir, nil
}

// folder returns the folder in which Build stores the binaries. It is in $ADMITKIT_CACHE, or else in .cache of the
// surrounding checkout of admitkit, or else in the user's cache folder.
func (r Release) folder() (string, error) {
	if dir := os.Getenv("ADMITKIT_CACHE"); dir != "" {
		dir, err := filepath.Abs(dir)
		return r.folderIn(dir), err
	}
	if dir := checkout(); dir != "" {
		return r.folderIn(filepath.Join(dir, ".cache")), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", problem.New("no cache folder is known: %w", err).Hint("export ADMITKIT_CACHE=FOLDER")
	}
	return r.folderIn(filepath.Join(dir, "admitkit")), nil
}

// checkout returns the root of the checkout of admitkit around the working directory, or "".
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
	defer func() { _ = f.Close() }() // nothing was written
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, found := strings.CutPrefix(lines.Text(), "module "); found {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// inspect returns a folder as a candidate, with the binaries that it lacks.
func inspect(source, dir string) Candidate {
	return Candidate{Source: source, Dir: dir, Missing: missingIn(dir, Binaries)}
}

// missingIn returns the binaries that a folder lacks.
func missingIn(dir string, binaries []string) []string {
	var missing []string
	for _, binary := range binaries {
		info, err := os.Stat(filepath.Join(dir, binary))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			missing = append(missing, binary)
		}
	}
	return missing
}

// envtestFolders returns the folders of setup-envtest for this platform, newest version first.
func envtestFolders() []string {
	base := os.Getenv("XDG_DATA_HOME")
	home, _ := os.UserHomeDir() // without a home folder, the patterns below match nothing
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
		return nil // the name of the home folder makes the pattern invalid
	}
	slices.SortFunc(found, func(a, b string) int { return compareVersions(filepath.Base(b), filepath.Base(a)) })
	return found
}

// compareVersions compares versions such as 1.36.3-linux-amd64 by the numbers before the first dash.
func compareVersions(a, b string) int {
	number := func(text string) []int {
		text, _, _ = strings.Cut(text, "-")
		var all []int
		for part := range strings.SplitSeq(text, ".") {
			n, _ := strconv.Atoi(part) // 0 if it is not a number
			all = append(all, n)
		}
		return all
	}
	return cmp.Or(slices.Compare(number(a), number(b)), strings.Compare(a, b))
}
