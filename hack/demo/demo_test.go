// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDemo checks the output of the demo, which is the first command that many users run.
func TestDemo(t *testing.T) {
	t.Chdir("../..")
	var out bytes.Buffer
	if err := run(t.Context(), &screen{w: &out}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"All 4 stories passed.", "Cleaned up"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	checkReadme(t, out.String())
	if strings.Contains(out.String(), "\x1b") {
		t.Error("the output has colours although it is not a terminal")
	}
}

// checkReadme checks that the output has the lines of the demo in examples/README.md, in order.
func checkReadme(t *testing.T, printed string) {
	t.Helper()
	readme, err := os.ReadFile("examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	seconds := regexp.MustCompile(`after [0-9.]+m?s`)
	lines := strings.Split(seconds.ReplaceAllString(printed, "after a while"), "\n")
	_, block, _ := strings.Cut(string(readme), "```console\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("examples/README.md has no output of the demo")
	}
	for want := range strings.Lines(seconds.ReplaceAllString(block, "after a while")) {
		want = strings.TrimSuffix(want, "\n")
		if want == "..." {
			continue
		}
		at := slices.Index(lines, want)
		if at < 0 {
			t.Fatalf("examples/README.md has a line that the demo does not print, or prints elsewhere: %q", want)
		}
		lines = lines[at+1:]
	}
}

func TestDiffLinesMarksChanges(t *testing.T) {
	rows := []struct{ before, after, want string }{
		{"a b c", "a b c", "  a|  b|  c"},
		{"a c", "a b c", "  a|+ b|  c"},
		{"a b c", "a c", "  a|- b|  c"},
		{"a b", "a c", "  a|- b|+ c"},
		{"x a b", "a b y", "- x|  a|  b|+ y"},
	}
	for _, row := range rows {
		if got := strings.Join(diffLines(strings.Fields(row.before), strings.Fields(row.after)), "|"); got != row.want {
			t.Errorf("%q to %q: got %q, want %q", row.before, row.after, got, row.want)
		}
	}
}

func TestWrittenDropsServerFields(t *testing.T) {
	pod := map[string]any{
		"metadata": map[string]any{"name": "x", "uid": "1", "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
		"spec": map[string]any{
			"dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
			"initContainers": []any{map[string]any{"name": "side", "restartPolicy": "Always", "imagePullPolicy": "Always"}},
		},
		"status": map[string]any{},
	}
	got, err := diffYAML(map[string]any{}, written(pod))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"- {}", "+ metadata:", "+   labels: null", "+   name: x", "+   namespace: null",
		"+ spec:", "+   initContainers:", "+   - name: side", "+     restartPolicy: Always"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestOnlyTerminalsGetColour(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if wantsColour(file) {
		t.Error("a file gets colours")
	}
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, like a terminal
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !wantsColour(terminal) {
		t.Error("a terminal gets no colours")
	}
	t.Setenv("NO_COLOR", "1")
	if wantsColour(terminal) {
		t.Error("a terminal gets colours despite NO_COLOR")
	}
	var out bytes.Buffer
	s := &screen{w: &out, colour: true}
	s.diff([]string{"+ a", "- b", "  c"})
	if got, want := out.String(), "\x1b[32m+ a\x1b[0m\n\x1b[31m- b\x1b[0m\n  c\n"; got != want {
		t.Errorf("got %q", got)
	}
}
