// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/internal/problem"
)

func inMemory() (*Screen, *bytes.Buffer, *bytes.Buffer) {
	var out, err bytes.Buffer
	return &Screen{In: strings.NewReader(""), Out: &out, Err: &err, Colour: "auto", Getenv: func(string) string { return "" }}, &out, &err
}

func TestProblem(t *testing.T) {
	rows := []struct {
		reason string
		err    error
		want   string
	}{
		{"one sentence", errors.New("no such file"), "admitkit: no such file\n"},
		{"hints follow in their order", problem.New("no cluster").Hint("do a").Hint("do %s", "b"), "admitkit: no cluster\nhint: do a\nhint: do b\n"},
		{"hints of a wrapped error stay", problem.New("outer: %w", problem.New("inner").Hint("do a")), "admitkit: outer: inner\nhint: do a\n"},
		{"further lines are indented", errors.New("first\nsecond"), "admitkit: first\n  second\n"},
		{"hints, too", problem.New("x").Hint("first\nsecond"), "admitkit: x\nhint: first\n      second\n"},
		{"control characters of others are escaped", problem.New("for a\x1b[2Jb").Hint("--server-name a\u202eb"),
			`admitkit: for a\u001b[2Jb` + "\n" + `hint: --server-name a\u202eb` + "\n"},
	}
	for _, row := range rows {
		s, out, err := inMemory()
		s.Problem(row.err)
		if err.String() != row.want || out.Len() > 0 {
			t.Errorf("%s: got %q and %q, want %q", row.reason, err, out, row.want)
		}
	}
}

func TestNote(t *testing.T) {
	s, _, err := inMemory()
	if s.Note("%s drops it", "\x1b]0;x\a"); err.String() != `admitkit: \u001b]0;x\u0007 drops it`+"\n" {
		t.Errorf("it says %q", err)
	}
	err.Reset()
	if s.Note("a\nadmitkit: b"); err.String() != "admitkit: a\n  admitkit: b\n" {
		t.Errorf("a note looks like two: %q", err)
	}
}

func TestQuiet(t *testing.T) {
	s, _, err := inMemory()
	s.Quiet = true
	s.Note("chosen")
	s.Progress().Step("working")
	if err.Len() > 0 {
		t.Errorf("it says %q", err)
	}
	if s.Problem(errors.New("wrong")); err.String() != "admitkit: wrong\n" {
		t.Errorf("an error is %q", err)
	}
}

func TestColours(t *testing.T) {
	for colour, want := range map[string]string{"auto": "x", "never": "x", "always": "\x1b[31mx\x1b[0m"} {
		s, _, _ := inMemory()
		s.Colour = colour
		if got := s.Painter().Red("x"); got != want {
			t.Errorf("%s, no terminal: %q, want %q", colour, got, want)
		}
		if got := s.Painter().Red(""); got != "" {
			t.Errorf("%s: nothing is painted as %q", colour, got)
		}
	}
}

func TestOutputsSet(t *testing.T) {
	rows := []struct{ reason, values, shown, wrong string }{
		{"the first one is the default", "", "text", ""},
		{"one form", "json", "json", ""},
		{"one to the screen, others into files", "text junit=a.xml json=b.json", "text,junit=a.xml,json=b.json", ""},
		{"the same form twice, to two places", "json json=a.json", "json,json=a.json", ""},
		{"a name may have an equals sign", "json=a=b", "json=a=b", ""},
		{"unknown", "yaml", "", `unknown output format "yaml": choose one of text, json, junit`},
		{"a file without a name", "json=", "", `"json=" has no file name`},
		{"two to the screen would be mixed", "text json", "", "both text and json go to standard output: write one into a file, as in -o json=FILE"},
		{"two into one file", "json=a junit=a", "", "a is named by two -o flags (json and junit): use a different file for each"},
	}
	for _, row := range rows {
		o := NewOutputs("text", "json", "junit")
		var err error
		for _, v := range strings.Fields(row.values) {
			if err == nil {
				err = o.Set(v)
			}
		}
		switch {
		case row.wrong != "" && (err == nil || err.Error() != row.wrong):
			t.Errorf("%s: %v, want %q", row.reason, err, row.wrong)
		case row.wrong == "" && (err != nil || o.String() != row.shown):
			t.Errorf("%s: %q, %v, want %q", row.reason, o, err, row.shown)
		}
	}
}

func TestOutputsWrite(t *testing.T) {
	t.Chdir(t.TempDir())
	s, out, notes := inMemory()
	s.Colour = "always"
	o := NewOutputs("text", "json")
	for _, v := range []string{"text", "json=a.json"} {
		if err := o.Set(v); err != nil {
			t.Fatal(err)
		}
	}
	write := func(form string, w io.Writer, p Painter) error {
		_, err := io.WriteString(w, p.Red(form))
		return err
	}
	if err := o.Write(s, write); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("a.json")
	if err != nil || string(file) != "json" || out.String() != "\x1b[31mtext\x1b[0m" || notes.String() != "admitkit: wrote a.json\n" {
		t.Errorf("a.json %q %v, standard output %q, notes %q", file, err, out, notes)
	}
	// A write that fails leaves the old file in place.
	failing := func(_ string, w io.Writer, _ Painter) error {
		_, _ = io.WriteString(w, "half")
		return errors.New("broken")
	}
	out.Reset()
	if err := o.Write(s, failing); err == nil || out.Len() > 0 {
		t.Errorf("an output format that fails: %v, %q", err, out)
	}
	if file, _ := os.ReadFile("a.json"); string(file) != "json" {
		t.Errorf("the file is %q now", file)
	}
}

func TestOnlyTextHasColours(t *testing.T) {
	s, out, _ := inMemory()
	s.Colour = "always"
	o := NewOutputs("text", "json")
	if err := o.Set("json"); err != nil {
		t.Fatal(err)
	}
	err := o.Write(s, func(form string, w io.Writer, p Painter) error {
		_, err := io.WriteString(w, p.Red(form))
		return err
	})
	if err != nil || out.String() != "json" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestOutputsCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	s, _, _ := inMemory()
	o := NewOutputs("text")
	if err := o.Set("text=there/is/none.txt"); err != nil {
		t.Fatal(err)
	}
	err := o.Check(s)
	if err == nil || !strings.Contains(err.Error(), "there is no folder there/is") || len(problem.Hints(err)) != 1 {
		t.Errorf("%v, %q", err, problem.Hints(err))
	}
}

func TestWriteFile(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "a")
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	if err := WriteFile(filepath.Join(folder, "none", "a"), nil); err == nil {
		t.Error("a folder that is not there is no error")
	}
	if err := WriteFile(os.DevNull, []byte("x")); err != nil {
		t.Errorf("a device: %v", err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device was replaced: %v", err)
	}
	if files, _ := os.ReadDir(folder); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

// TestWriteFileKeepsLinks checks that a symbolic link to a file is kept.
func TestWriteFileKeepsLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile("real", nil, 0o644), os.Symlink("real", "link"), WriteFile("link", []byte("x"))); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat("link")
	text, _ := os.ReadFile("real")
	if err != nil || info.Mode()&os.ModeSymlink == 0 || string(text) != "x" {
		t.Errorf("link is %v, real holds %q", info.Mode(), text)
	}
}

// TestWriteFileKeepsLinksToNothing checks that the target of a dangling link is created.
func TestWriteFileKeepsLinksToNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Symlink("real", "link"), WriteFile("link", []byte("x"))); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat("link")
	text, _ := os.ReadFile("real")
	if err != nil || info.Mode()&os.ModeSymlink == 0 || string(text) != "x" {
		t.Errorf("link is %v, real holds %q", info.Mode(), text)
	}
}

// TestWriteFileToWhereItPrints checks that -o text -o json=/dev/stdout > out.txt writes both forms to out.txt.
func TestWriteFileToWhereItPrints(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.txt")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // only read
	before := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = before }()
	_, printing := file.WriteString("text\n")
	if err := errors.Join(printing, WriteFile(name, []byte("json\n"))); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "text\njson\n" {
		t.Errorf("the file contains %q, %v", text, err)
	}
}

func TestProgress(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		s, _, err := inMemory()
		now := time.Unix(0, 0)
		p := s.Progress()
		p.terminal, p.now, p.last = terminal, func() time.Time { return now }, now
		p.every = map[bool]time.Duration{true: 100 * time.Millisecond, false: 15 * time.Second}[terminal]
		p.Step("at once")
		now = now.Add(p.every)
		p.Part(1, 4, "a quarter")
		p.Step("too soon")
		now = now.Add(p.every)
		p.Step("%s", strings.Repeat("é", 100)+"\x1b[31m\n")
		p.Done()
		p.Done()
		quarter := "[======                  ]  25%  a quarter"
		want := "admitkit: " + quarter + "\nadmitkit: " + strings.Repeat("é", 100) + " [31m \n"
		if terminal {
			want = "\r\x1b[K" + quarter + "\r\x1b[K" + strings.Repeat("é", 79) + "\r\x1b[K"
		}
		if err.String() != want {
			t.Errorf("terminal %v:\n%q, want\n%q", terminal, err, want)
		}
	}
}
