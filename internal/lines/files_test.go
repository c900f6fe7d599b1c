// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*") // not a pattern
	if err := os.MkdirAll(filepath.Join(dir, "folder.log"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.log", "a.log.gz", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, "other")
	got, err := Files([]string{other, dir}, ".log", ".log.gz")
	if want := []string{other, filepath.Join(dir, "a.log.gz"), filepath.Join(dir, "b.log")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	var empty *EmptyError
	if _, err := Files([]string{dir}, ".txt", ".md"); !errors.As(err, &empty) || err.Error() != "the folder "+dir+" has no files *.txt or *.md" {
		t.Errorf("a folder without logs: %v", err)
	}
	if _, err := Files([]string{filepath.Join(dir, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
