// SPDX-License-Identifier: Apache-2.0

// Release builds the files of a release into a folder: for each platform an archive with the tool and a bill of
// materials, and the checksums of all files. Two runs on one commit write the same archives.
//
//	go run . -version v0.1.0 -out dist             the commit has the tag and an entry in the changelog
//	go run . -dry-run -out dist -platforms linux/amd64
package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const tool = "github.com/admitkit/admitkit/cmd/admitkit"

// A release has the flags and what git reports about the commit.
type release struct {
	root, version, out string
	dryRun             bool
	platforms          []string
	committed          time.Time // the time of all files in the archives
}

func main() {
	r := release{}
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "platforms to build for, as GOOS/GOARCH")
	flag.StringVar(&r.version, "version", "", "version of the release, such as v0.1.0: the tag of the commit")
	flag.StringVar(&r.out, "out", "dist", "folder for the files, which must be empty or absent")
	flag.BoolVar(&r.dryRun, "dry-run", false, "build a commit without a tag and an entry in the changelog")
	flag.Parse()
	r.platforms = strings.Split(*platforms, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := r.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	var files []string
	for _, platform := range r.platforms {
		fmt.Fprintln(os.Stderr, "release: building for", platform)
		written, err := r.build(ctx, platform)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		files = append(files, written...)
	}
	slices.Sort(files)
	return writeChecksums(r.out, files)
}

// prepare checks the commit and creates the output folder.
func (r *release) prepare(ctx context.Context) error {
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	r.root = root
	changes, err := output(ctx, r.root, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !r.dryRun {
		return fmt.Errorf("there are uncommitted changes: commit or stash them\n%s", changes)
	}
	seconds, err := output(ctx, r.root, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	r.committed = time.Unix(unix, 0).UTC()
	if r.dryRun {
		r.version = "v0.0.0-dry-run"
	} else if err := r.checkVersion(ctx); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it or choose another folder with -out", r.out)
	}
	return os.MkdirAll(r.out, 0o755)
}

var versionPattern = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// checkVersion checks that the tag of the commit and the changelog have the version.
func (r *release) checkVersion(ctx context.Context) error {
	if !versionPattern.MatchString(r.version) {
		return fmt.Errorf("-version=%q is not a version such as v0.1.0", r.version)
	}
	tags, err := output(ctx, r.root, "git", "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	for _, tag := range []string{r.version, "verifytest/" + r.version} { // a module in a folder has tags with the folder's name
		if !slices.Contains(strings.Fields(tags), tag) {
			return fmt.Errorf("the commit has no tag %s: git tag %s", tag, tag)
		}
	}
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	heading := "## " + strings.TrimPrefix(r.version, "v")
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(heading) + `(\s|$)`).Match(changelog) {
		return fmt.Errorf("CHANGELOG.md has no heading %q: replace \"Unreleased\"", heading)
	}
	return nil
}

// build writes the archive of a platform and the bill of materials of its tool. It returns their names.
func (r *release) build(ctx context.Context, platform string) ([]string, error) {
	system, architecture, ok := strings.Cut(platform, "/")
	if !ok {
		return nil, errors.New("a platform has the form GOOS/GOARCH")
	}
	scratch, err := os.MkdirTemp("", "admitkit-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	binary := filepath.Join(scratch, "admitkit")
	if system == "windows" {
		binary += ".exe"
	}
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", binary, tool)
	c.Dir, c.Stderr = r.root, os.Stderr
	// The files must not depend on the settings of this machine.
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
	if err := c.Run(); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	if info.Main.Version != r.version && !r.dryRun {
		return nil, fmt.Errorf("the tool has version %s, not %s: is go's VCS stamping off?", info.Main.Version, r.version)
	}
	name := fmt.Sprintf("admitkit_%s_%s_%s", strings.TrimPrefix(r.version, "v"), system, architecture)
	if err := r.writeArchive(filepath.Join(r.out, name+".tar.gz"), binary); err != nil {
		return nil, err
	}
	if err := r.writeSBOM(ctx, filepath.Join(r.out, name+".cdx.json"), binary); err != nil {
		return nil, err
	}
	return []string{name + ".tar.gz", name + ".cdx.json"}, nil
}

// writeSBOM writes the modules in a binary in CycloneDX's format.
func (r *release) writeSBOM(ctx context.Context, file, binary string) error {
	c := exec.CommandContext(ctx, "go", "tool", "cyclonedx-gomod", "bin", "-json", "-noserial", "-notimestamp", "-std", "-output", file, "-version", r.version, binary)
	c.Dir = filepath.Join(r.root, "hack", "release")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("cyclonedx-gomod: %w\n%s", err, text)
	}
	return nil
}

// output runs a command and returns its trimmed output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
