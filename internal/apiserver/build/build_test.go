// SPDX-License-Identifier: Apache-2.0

//go:build unix

package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/apiserver/flock"
)

// TestPins checks the pinned versions. Otherwise a mistake in them would show only where the cache is empty.
func TestPins(t *testing.T) {
	var versions []string
	for _, r := range Releases() {
		v := r.Version()
		versions = append(versions, v[:strings.LastIndex(v, ".")])
		for _, binary := range Binaries {
			if !strings.Contains(r.goMod, packageOf(binary)) {
				t.Errorf("%s: %s is not pinned", v, packageOf(binary))
			}
		}
		for _, want := range []string{"component-base/version.gitVersion=" + v, "client-go/pkg/version.gitMajor=1 ", "-s -w "} {
			if !strings.Contains(r.linkerFlags(), want) {
				t.Errorf("no %q in %s", want, r.linkerFlags())
			}
		}
		dir := t.TempDir()
		if err := r.writeModule(dir); err != nil {
			t.Fatal(err)
		}
		cmd := goCommand(t.Context(), dir, "list", "-mod=readonly", "-m", "k8s.io/kubernetes", "k8s.io/apiserver")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		staging := "v0" + strings.TrimPrefix(v, "v1")
		if want := "k8s.io/kubernetes " + v + "\nk8s.io/apiserver " + staging + " => k8s.io/apiserver " + staging; err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("go list -m says %s, %v, want %s", out, err, want)
		}
	}
	if want := []string{"v1.37", "v1.36", "v1.35"}; !slices.Equal(versions, want) {
		t.Errorf("the releases are %q, want %q", versions, want)
	}
}

func TestChoose(t *testing.T) {
	rows := []struct{ reason, name, variable, want string }{
		{"the default", "", "", Default().Version()},
		{"a minor version", "1.35", "", "v1.35.4"},
		{"with a v", "v1.35", "", "v1.35.4"},
		{"the whole version", "1.37.2", "", "v1.37.2"},
		{"the whole version with a v", "v1.37.2", "", "v1.37.2"},
		{"the variable", "", "1.35", "v1.35.4"},
		{"the name comes before the variable", "1.37", "1.35", "v1.37.2"},
		{"another patch release", "1.37.1", "", ""},
		{"the beginning of a minor version", "1.3", "", ""},
		{"too old", "1.20", "", ""},
		{"a word", "latest", "", ""},
		{"a variable with an unknown version", "", "1.20", ""},
	}
	for _, row := range rows {
		t.Setenv(Kubernetes, row.variable)
		got, err := Choose(row.name)
		if row.want == "" {
			if err == nil || !strings.HasSuffix(err.Error(), "cannot be built: the versions that can are v1.37.2, v1.36.3, v1.35.4") {
				t.Errorf("%s: got %s, %v", row.reason, got.Version(), err)
			}
		} else if err != nil || got.Version() != row.want {
			t.Errorf("%s: got %s, %v, want %s", row.reason, got.Version(), err, row.want)
		}
	}
}

func TestCompareVersions(t *testing.T) {
	rows := []struct {
		reason, a, b string
		want         int
	}{
		{"parts compare as numbers", "1.9.1-linux-amd64", "1.36.0-linux-amd64", -1},
		{"the patch counts", "1.36.3-linux-amd64", "1.36.0-linux-amd64", 1},
		{"the same", "1.36.3-linux-amd64", "1.36.3-linux-amd64", 0},
		{"a name without a version comes first", "x-linux-amd64", "1.0.0-linux-amd64", -1},
	}
	for _, row := range rows {
		if got := compareVersions(row.a, row.b); got != row.want {
			t.Errorf("%s and %s: got %d, want %d: %s", row.a, row.b, got, row.want, row.reason)
		}
	}
}

func TestFolder(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	t.Setenv("HOME", elsewhere)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(elsewhere, "caches"))
	rows := []struct{ name, reason, dir, cache, want string }{
		{"checkout", "a checkout of admitkit has its own cache", filepath.Join(root, "pkg"), "", filepath.Join(root, ".cache")},
		{"other module", "the nearest go.mod may be of a nested module", filepath.Join(root, "hack/bench"), "", filepath.Join(root, ".cache")},
		{"variable", "an explicit setting comes first", filepath.Join(root, "pkg"), filepath.Join(elsewhere, "mine"), filepath.Join(elsewhere, "mine")},
	}
	if runtime.GOOS == "linux" {
		rows = append(rows, struct{ name, reason, dir, cache, want string }{
			"elsewhere", "projects share the user's cache", elsewhere, "", filepath.Join(elsewhere, "caches", "admitkit")})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Chdir(row.dir)
			t.Setenv("ADMITKIT_CACHE", row.cache)
			got, err := Default().folder()
			if err != nil || filepath.Dir(filepath.Dir(filepath.Dir(got))) != row.want {
				t.Errorf("got %s, %v, want it below %s: %s", got, err, row.want, row.reason)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	var messages, steps bytes.Buffer
	p := &progress{name: "etcd", step: func(string, ...any) { steps.WriteString(".") }}
	for _, line := range []string{"go: downloading k8s.io/api v0.36.3\n", "k8s.io/api/core/v1\n", "# k8s.io/api\n", "\n", "x.go:1:2: undefined: y\n"} {
		p.line(line, &messages)
	}
	if p.downloaded != 1 || p.compiled != 1 || messages.String() != "# k8s.io/api\nx.go:1:2: undefined: y\n" || steps.Len() != 4 {
		t.Errorf("%+v, %q, %d steps", p, &messages, steps.Len())
	}
}

// fakeGo puts a go command on PATH that runs a script. The variable $out of the script is the file name after -o.
func fakeGo(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\nout=${9}\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("ADMITKIT_CACHE", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
}

func TestBuild(t *testing.T) {
	fakeGo(t, `echo "go: downloading x" >&2; echo "$10" >"$out"; echo "$@" >>"$ADMITKIT_CACHE/calls"`)
	folder, err := Default().folder()
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	o := Options{Note: func(format string, _ ...any) { notes = append(notes, format) }}
	for range 2 {
		dir, err := Build(t.Context(), o)
		if err != nil || dir != folder || len(inspect("", dir).Missing) > 0 {
			t.Fatalf("got %s, %v", dir, err)
		}
	}
	if n := calls(t); n != 3 {
		t.Errorf("the go command ran %d times, want 3: the second build finds all binaries", n)
	}
	if len(notes) != 2 {
		t.Errorf("notes: %q", notes)
	}
	o.Force = true
	if _, err := Build(t.Context(), o); err != nil || calls(t) != 6 {
		t.Errorf("forced: %d, %v", calls(t), err)
	}
	empty(t, os.Getenv("TMPDIR"))
}

func TestBuildFails(t *testing.T) {
	fakeGo(t, `echo "k8s.io/api" >&2; echo "x.go:1: dial tcp: no route" >&2; exit 1`)
	_, err := Build(t.Context(), Options{})
	if err == nil || err.Error() != "cannot build etcd: go build failed\nx.go:1: dial tcp: no route" {
		t.Errorf("got %v", err)
	}
	nothingLeft(t)
}

func TestBuildIsInterrupted(t *testing.T) {
	fakeGo(t, `echo half >"$out"; echo "k8s.io/api" >&2; sleep 60; echo >"$ADMITKIT_CACHE/survived"`)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Build(ctx, Options{Step: func(string, ...any) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	nothingLeft(t)
}

// TestBuildsWaitForEachOther checks that the second of two builds waits and then builds nothing.
func TestBuildsWaitForEachOther(t *testing.T) {
	fakeGo(t, `echo x >"$out"; echo "$@" >>"$ADMITKIT_CACHE/calls"`)
	dir, err := Default().folder()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := flock.Try(filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	if _, err := Build(t.Context(), Options{Note: func(format string, _ ...any) {
		if strings.HasPrefix(format, "waiting") {
			waited = true
			for _, binary := range Binaries { // the work of the build that holds the lock
				if err := os.WriteFile(filepath.Join(dir, binary), nil, 0o755); err != nil {
					t.Error(err)
				}
			}
			unlock()
		}
	}}); err != nil || !waited {
		t.Errorf("waited %v, %v", waited, err)
	}
	if n := calls(t); n != 0 {
		t.Errorf("built %d again", n)
	}
}

func calls(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("ADMITKIT_CACHE"), "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// nothingLeft checks that a build left no temporary files and no half-written binaries.
func nothingLeft(t *testing.T) {
	t.Helper()
	empty(t, os.Getenv("TMPDIR"))
	dir, err := Default().folder()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, ".lock")); err != nil {
		t.Error(err)
	}
	empty(t, dir)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("%s remains", entry.Name())
	}
}

// TestImportsLittle checks that hack/apiserver imports nothing from Kubernetes, so that scripts start it quickly.
func TestImportsLittle(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../../hack/apiserver").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if strings.Contains(strings.SplitN(path, "/", 2)[0], ".") && !strings.HasPrefix(path, module) && !strings.HasPrefix(path, "golang.org/x/") {
			t.Errorf("hack/apiserver imports %s", path)
		}
	}
}
