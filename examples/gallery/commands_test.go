// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagePrintsTheManifests runs the commands of docs/gallery.md that print the manifests again. They run in a folder
// with a copy of the manifests, and may change only the generated blocks.
func TestPagePrintsTheManifests(t *testing.T) {
	page, err := os.ReadFile("../../docs/gallery.md")
	if err != nil {
		t.Fatal(err)
	}
	const dir = "examples/gallery/manifests"
	manifests, err := filepath.Abs("manifests")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS(dir, os.DirFS(manifests)); err != nil {
		t.Fatal(err)
	}
	const selectors = "podNodeSelectorPluginConfig: {team-a: env=test}\n"
	if err := os.WriteFile(filepath.Join(dir, "selectors.yaml"), []byte(selectors), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^ *go run \./examples/gallery (.*--output=(\S+))$`).FindAllStringSubmatch(strings.ReplaceAll(string(page), "\\\n", ""), -1)
	if len(commands) != 2 {
		t.Fatalf("the page has %d commands with --output, want 2", len(commands))
	}
	for _, command := range commands {
		file := command[2]
		old := bytes.Replace(read(t, file), []byte("---\n"), []byte("---\n# old\n"), 1) // so that there is a change
		if err := os.WriteFile(file, old, 0o600); err != nil {
			t.Fatal(err)
		}
		output, message := run(t, strings.Fields(command[1])...)
		now := read(t, file)
		if message != "" || !strings.HasPrefix(output, file+":\n- # old\n") || bytes.Contains(now, []byte("# old")) {
			t.Errorf("%s: got %q and\n%s", command[0], message, output)
		}
		if got, want := around(now), around(old); got != want {
			t.Errorf("%s: the text around the block is\n%s\nwant\n%s", command[0], got, want)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// around returns the text of a manifest without the text of its generated block.
func around(manifest []byte) string {
	return regexp.MustCompile(`(?s)(# BEGIN GENERATED [^\n]*\n).*(# END GENERATED\n)`).ReplaceAllString(string(manifest), "$1$2")
}

// TestPageSaysWhichConfigurationFilesAreNeeded checks the column "Configuration file" of the first table in
// docs/gallery.md.
func TestPageSaysWhichConfigurationFilesAreNeeded(t *testing.T) {
	page, err := os.ReadFile("../../docs/gallery.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range policies {
		want := "optional"
		if _, message := run(t, "--print-rbac", "--enable="+name); message != "" {
			want = "required"
		} else if _, message := run(t, "--print-rbac", "--enable="+name, "--config="+name+"=missing.yaml"); strings.Contains(message, "has no configuration") {
			want = "none"
		}
		row := regexp.MustCompile(`(?m)^\| \[` + name + `\]\(\.\./examples/gallery/` + strings.ToLower(name) + `\) \| [^|]+ \| ` + want + ` \| [^|]+ \|$`)
		if !row.Match(page) {
			t.Errorf("docs/gallery.md has no row of %s with the configuration file %q", name, want)
		}
	}
}
