// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// lower is a Parse function. It joins the contents, and fails if they have upper-case letters.
func lower(contents [][]byte) (string, error) {
	var parts []string
	for _, c := range contents {
		if s := string(c); s != strings.ToLower(s) {
			return "", fmt.Errorf("%q is not lower case", s)
		}
		parts = append(parts, string(c))
	}
	return strings.Join(parts, "+"), nil
}

// A fixture is two files and the reports about them.
type fixture struct {
	*Files[string]
	a, b    string
	reports []string
	parses  int
}

func newFixture(t *testing.T) *fixture {
	dir := t.TempDir()
	f := &fixture{a: filepath.Join(dir, "a"), b: filepath.Join(dir, "b")}
	f.Files = New(Options[string]{
		Paths:    []string{f.a, f.b},
		MaxBytes: 10,
		Parse: func(contents [][]byte) (string, error) {
			f.parses++
			return lower(contents)
		},
		Report: func(err error) { f.reports = append(f.reports, fmt.Sprint(err)) },
	})
	write(t, f.a, "one")
	write(t, f.b, "two")
	return f
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) want(t *testing.T, value string, generation int, trouble string) {
	t.Helper()
	got, gen := f.Get()
	if got != value || gen != generation {
		t.Errorf("got %q, generation %d; want %q, %d", got, gen, value, generation)
	}
	err := f.Err()
	if (err == nil) != (trouble == "") || err != nil && !strings.Contains(err.Error(), trouble) {
		t.Errorf("got error %v, want %q", err, trouble)
	}
}

func TestLoad(t *testing.T) {
	f := newFixture(t)
	f.want(t, "", 0, "")
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	f.want(t, "one+two", 1, "")
	steps := []struct {
		why     string
		do      func()
		value   string
		gen     int
		trouble string
		report  string // empty: nothing is reported
	}{
		{"nothing happened", func() {}, "one+two", 1, "", ""},
		{"one file changes", func() { write(t, f.b, "three") }, "one+three", 2, "", "<nil>"},
		{"same bytes again", func() { write(t, f.b, "three") }, "one+three", 2, "", ""},
		{"bytes move to the other file", func() { write(t, f.a, "onethr"); write(t, f.b, "ee") }, "onethr+ee", 3, "", "<nil>"},
		{"a parse error", func() { write(t, f.b, "BAD") }, "onethr+ee", 3, f.a + ", " + f.b + `: "BAD" is not lower case`, "BAD"},
		{"still not", func() {}, "onethr+ee", 3, "BAD", ""},
		{"for another reason", func() { write(t, f.b, "EVIL") }, "onethr+ee", 3, "EVIL", "EVIL"},
		{"the last valid content is back", func() { write(t, f.b, "ee") }, "onethr+ee", 3, "", "<nil>"},
		{"missing", func() { os.Remove(f.a) }, "onethr+ee", 3, f.a + ": no such file", "no such file"},
		{"still missing", func() {}, "onethr+ee", 3, "no such file", ""},
		{"back", func() { write(t, f.a, "x") }, "x+ee", 4, "", "<nil>"},
		{"too large", func() { write(t, f.a, "12345678901") }, "x+ee", 4, f.a + " is larger than 10 bytes", "larger"},
		{"the largest size", func() { write(t, f.a, "1234567890") }, "1234567890+ee", 5, "", "<nil>"},
		{"empty, and Parse decides", func() { write(t, f.a, "") }, "+ee", 6, "", "<nil>"},
		{"a folder", func() { os.Remove(f.a); mkdir(t, f.a) }, "+ee", 6, "not a regular file", "not a regular file"},
		{"a pipe without a writer", func() { os.Remove(f.a); mkfifo(t, f.a) }, "+ee", 6, "not a regular file", ""},
	}
	for _, step := range steps {
		t.Run(step.why, func(t *testing.T) {
			f.reports = nil
			step.do()
			if err := f.Load(); !errors.Is(err, f.Err()) {
				t.Errorf("Load returned %v, Err %v", err, f.Err())
			}
			f.want(t, step.value, step.gen, step.trouble)
			switch {
			case step.report == "" && len(f.reports) > 0,
				step.report != "" && (len(f.reports) != 1 || !strings.Contains(f.reports[0], step.report)):
				t.Errorf("reported %q, want %q", f.reports, step.report)
			}
		})
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnchangedFilesAreNotParsedAgain(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		if err := f.Load(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, f.a, "BAD")
	for range 3 {
		if err := f.Load(); err == nil {
			t.Fatal("no error")
		}
	}
	if f.parses != 2 {
		t.Errorf("parsed %d times, want 2", f.parses)
	}
}

func TestStartsWithoutFiles(t *testing.T) {
	f := newFixture(t)
	os.Remove(f.a)
	if err := f.Load(); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	f.want(t, "", 0, f.a)
	write(t, f.a, "now")
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	f.want(t, "now+two", 1, "")
}

// TestSymlinkSwaps updates a file as the kubelet updates a mounted Secret: the file is a link into a folder that is
// itself a link, and the link to the folder is replaced. Load must read the new content each time.
func TestSymlinkSwaps(t *testing.T) {
	dir := t.TempDir()
	volume := func(name, content string) {
		mkdir(t, filepath.Join(dir, name))
		write(t, filepath.Join(dir, name, "token"), content)
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	volume("..1", "one")
	path := filepath.Join(dir, "token")
	if err := os.Symlink(filepath.Join("..data", "token"), path); err != nil {
		t.Fatal(err)
	}
	f := New(Options[string]{Paths: []string{path}, Parse: lower})
	for i, want := range []string{"one", "two", "six"} { // of equal length, and perhaps with equal time stamps
		if i > 0 {
			volume(fmt.Sprint("..", i+1), want)
		}
		if err := f.Load(); err != nil {
			t.Fatal(err)
		}
		if got, gen := f.Get(); got != want || gen != i+1 {
			t.Errorf("got %q, generation %d; want %q, %d", got, gen, want, i+1)
		}
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		if err := f.Load(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { f.Run(ctx, 0); close(ended) }()

		write(t, f.a, "new")
		<-time.After(DefaultInterval + DefaultPause - 1)
		synctest.Wait()
		f.want(t, "one+two", 1, "")
		<-time.After(1)
		synctest.Wait()
		f.want(t, "new+two", 2, "")

		os.Remove(f.a)
		<-time.After(100 * DefaultInterval)
		synctest.Wait()
		f.want(t, "new+two", 2, "no such file")
		if len(f.reports) != 3 {
			t.Errorf("reported %q, want three", f.reports)
		}
		stop()
		<-ended
	})
}

// TestReadersWhileFilesChange checks that concurrent readers see only complete values, and that the generation never
// decreases.
func TestReadersWhileFilesChange(t *testing.T) {
	f := newFixture(t)
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for last := 0; ; {
				value, gen := f.Get()
				if a, b, ok := strings.Cut(value, "+"); !ok || b != "two" || len(a) != 3 || gen < last {
					t.Errorf("got %q, generation %d after %d", value, gen, last)
					return
				}
				last = gen
				_ = f.Err()
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for _, content := range slices.Repeat([]string{"abc", "def", "BAD"}, 100) {
		write(t, f.a, content)
		_ = f.Load()
	}
	close(done)
	readers.Wait()
}

// TestSwapBetweenTwoFiles changes both files while the program reads them, so that it reads a new file and then an old
// one. The two must not be combined.
func TestSwapBetweenTwoFiles(t *testing.T) {
	f := newFixture(t)
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	write(t, f.a, "new")
	swapped := false
	f.readFile = func(path string, most int64) ([]byte, error) {
		content, err := readFile(path, most)
		if path == f.b && !swapped { // read the old content of b after the new content of a
			swapped = true
			write(t, f.b, "new")
		}
		return content, err
	}
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	f.want(t, "new+new", 2, "")
	if f.parses != 2 {
		t.Errorf("parsed %d times, want 2", f.parses)
	}
}
