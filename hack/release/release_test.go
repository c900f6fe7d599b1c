// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
	"sigs.k8s.io/yaml"
)

// command runs a command with more environment variables and returns its output.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// tagged clones the repository and tags a commit whose changelog has the version. It returns the clone.
func tagged(t *testing.T) (dir, version string) {
	t.Helper()
	root := command(t, ".", nil, "git", "rev-parse", "--show-toplevel")
	dir = filepath.Join(t.TempDir(), "admitkit")
	command(t, ".", nil, "git", "clone", "--quiet", root, dir)
	command(t, dir, nil, "git", "config", "user.name", "release test")
	command(t, dir, nil, "git", "config", "user.email", "release@example.com")
	// The version names the commit, because the module cache keeps a version for ever.
	version = "v0.0.1-test." + command(t, dir, nil, "git", "rev-parse", "--short=12", "HEAD")

	r := release{version: version, out: filepath.Join(dir, "..", "none"), platforms: []string{"linux/amd64"}}
	t.Chdir(dir)
	wantError(t, &r, "the commit has no tag "+version)
	command(t, dir, nil, "git", "tag", version)
	wantError(t, &r, "the commit has no tag verifytest/"+version)
	command(t, dir, nil, "git", "tag", "verifytest/"+version)
	wantError(t, &r, "CHANGELOG.md has no heading")
	changelog := read(t, filepath.Join(dir, "CHANGELOG.md"))
	commitAs := func() {
		command(t, dir, nil, "git", "commit", "--quiet", "--all", "--message", "release "+version)
		command(t, dir, nil, "git", "tag", "--force", version)
		command(t, dir, nil, "git", "tag", "--force", "verifytest/"+version)
	}
	write(t, filepath.Join(dir, "CHANGELOG.md"), strings.Replace(changelog, "\n## Unreleased", "\n## "+version[1:]+".1", 1))
	commitAs()
	wantError(t, &r, "CHANGELOG.md has no heading") // no heading for this exact version
	write(t, filepath.Join(dir, "CHANGELOG.md"), strings.Replace(changelog, "\n## Unreleased", "\n## "+version[1:], 1))
	wantError(t, &r, "uncommitted changes")
	commitAs()
	return dir, version
}

func wantError(t *testing.T, r *release, want string) {
	t.Helper()
	if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRelease builds a release for this platform. Then it publishes the module in a folder laid out as a module
// proxy, installs the tool from there, and runs the CI workflow of a new project in a clone.
func TestRelease(t *testing.T) {
	dir, version := tagged(t)
	out := filepath.Join(t.TempDir(), "dist")
	r := release{version: version, out: out, platforms: []string{runtime.GOOS + "/" + runtime.GOARCH}}
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantError(t, &r, "is not empty")
	checkFiles(t, &r)

	env := publish(t, dir, version)
	bin := t.TempDir()
	command(t, bin, append(env, "GOBIN="+bin), "go", "install", tool+"@"+version)
	admitkit := filepath.Join(bin, "admitkit")
	if got := command(t, bin, nil, admitkit, "version"); !strings.HasPrefix(got, "admitkit "+version+"\n") {
		t.Errorf("the installed tool prints %s", got)
	}
	runWorkflow(t, admitkit, env)
}

// checkFiles checks the archive, the bill of materials and the checksums.
func checkFiles(t *testing.T, r *release) {
	t.Helper()
	name := "admitkit_" + r.version[1:] + "_" + runtime.GOOS + "_" + runtime.GOARCH
	archive := read(t, filepath.Join(r.out, name+".tar.gz"))
	files, binary := unpack(t, archive)
	if want := []string{"CHANGELOG.md", "LICENSE", "README.md", "admitkit"}; !slices.Equal(slices.Sorted(maps.Keys(files)), want) {
		t.Errorf("the archive has %v, want %v", files, want)
	}
	if files["admitkit"] != 0o755 || files["LICENSE"] != 0o644 {
		t.Errorf("the modes are %v", files)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if info.Main.Version != r.version || settings["-trimpath"] != "true" || settings["CGO_ENABLED"] != "0" {
		t.Errorf("the tool is %s, built with %v", info.Main.Version, settings)
	}
	if symbols := command(t, ".", nil, "bash", "-c", `go tool nm "$1" || true`, "nm", binary); !strings.Contains(symbols, "no symbols") {
		t.Errorf("the tool has symbols: %.200s", symbols)
	}
	var bill struct {
		Components []struct{ Name, Version string }
	}
	bom := read(t, filepath.Join(r.out, name+".cdx.json"))
	if err := json.Unmarshal([]byte(bom), &bill); err != nil {
		t.Fatal(err)
	}
	for _, dep := range info.Deps {
		if !slices.Contains(bill.Components, struct{ Name, Version string }{dep.Path, dep.Version}) {
			t.Errorf("the bill of materials lacks %s %s", dep.Path, dep.Version)
		}
	}
	sum := sha256.Sum256([]byte(archive))
	if line := hex.EncodeToString(sum[:]) + "  " + name + ".tar.gz\n"; !strings.Contains(read(t, filepath.Join(r.out, "checksums.txt")), line) {
		t.Errorf("checksums.txt lacks %s", line)
	}
	again := filepath.Join(t.TempDir(), "again.tar.gz")
	if err := r.writeArchive(again, binary); err != nil {
		t.Fatal(err)
	}
	if read(t, again) != archive {
		t.Error("a second archive of the same tool differs")
	}
	if err := r.writeSBOM(t.Context(), again, binary); err != nil {
		t.Fatal(err)
	}
	if read(t, again) != bom {
		t.Error("a second bill of materials of the same tool differs")
	}
}

// unpack returns the modes of the files in an archive, and the path of the unpacked tool.
func unpack(t *testing.T, archive string) (modes map[string]int64, binary string) {
	t.Helper()
	uncompressed, err := gzip.NewReader(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	modes, binary = map[string]int64{}, filepath.Join(t.TempDir(), "admitkit")
	for files := tar.NewReader(uncompressed); ; {
		header, err := files.Next()
		if err == io.EOF {
			return modes, binary
		}
		if err != nil {
			t.Fatal(err)
		}
		var content bytes.Buffer
		if _, err := io.Copy(&content, files); err != nil {
			t.Fatal(err)
		}
		if modes[header.Name] = header.Mode; header.Name == "admitkit" {
			write(t, binary, content.String())
		}
	}
}

// publish writes the module into a folder with the layout of a module proxy (go.dev/ref/mod#goproxy-protocol). It
// returns the environment of a machine that has only this folder and the modules that were downloaded before.
func publish(t *testing.T, dir, version string) []string {
	t.Helper()
	const path = "github.com/admitkit/admitkit"
	proxy := t.TempDir()
	folder := filepath.Join(proxy, path, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	err = modzip.CreateFromVCS(archive, module.Version{Path: path, Version: version}, dir, version, "")
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, version+".mod"), read(t, filepath.Join(dir, "go.mod")))
	write(t, filepath.Join(folder, version+".info"), `{"Version": "`+version+`"}`)
	write(t, filepath.Join(folder, "list"), version+"\n")

	cache := command(t, ".", nil, "go", "env", "GOMODCACHE")
	t.Cleanup(func() {
		for _, left := range []string{filepath.Join(cache, path+"@"+version), filepath.Join(cache, "cache", "download", path, "@v")} {
			if err := os.RemoveAll(left); err != nil {
				t.Errorf("cannot clean the module cache: %v", err)
			}
		}
	})
	return []string{"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download"), "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOWORK=off"}
}

// runWorkflow creates a project and runs the commands of its CI workflow in a clone of it, as on another machine.
func runWorkflow(t *testing.T, admitkit string, env []string) {
	t.Helper()
	parent := t.TempDir()
	command(t, parent, env, admitkit, "init", "shop", "--validate", "pods")
	project, clone := filepath.Join(parent, "shop"), filepath.Join(t.TempDir(), "clone")
	if mod := read(t, filepath.Join(project, "go.mod")); strings.Contains(mod, "replace") {
		t.Errorf("go.mod of a project replaces a module:\n%s", mod)
	}
	command(t, project, nil, "git", "init", "--quiet", "--initial-branch=main")
	command(t, project, nil, "git", "add", ".")
	command(t, project, nil, "git", "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "start")
	command(t, parent, nil, "git", "clone", "--quiet", project, clone)
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(clone, ".github/workflows/ci.yaml"))), &workflow); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, step := range workflow.Jobs["test"].Steps {
		if step.Run != "" {
			t.Log(step.Run)
			command(t, clone, env, "bash", "-euo", "pipefail", "-c", step.Run)
			ran++
		}
	}
	if ran < 4 {
		t.Errorf("the workflow has %d commands", ran)
	}
}
