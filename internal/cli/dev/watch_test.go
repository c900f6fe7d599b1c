// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWatcherConcerns checks that only changes of files that a build depends on cause a rebuild.
func TestWatcherConcerns(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/shop\n\ngo 1.26\n", "README.md": "", "dev.log": "", "hooks/NOTES.txt": "", "texts/more/deny.txt": "",
		"hooks/hooks.go": "package hooks\n\nimport _ \"example.com/shop/texts\"\n",
		"texts/texts.go": "package texts\n\nimport _ \"embed\"\n\n//go:embed more/deny.txt\nvar Deny string\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := newWatcher(t.Context(), dir, "./hooks")
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, row := range []struct {
		path, reason string
		want         bool
	}{
		{"go.mod", "what the module needs", true},
		{"hooks/hooks.go", "a source", true},
		{"texts/texts.go", "a source of an imported package", true},
		{"texts/more/deny.txt", "it is embedded", true},
		{"texts/more", "a folder: packages may come", true},
		{"hooks/gone", "it may have been a folder", true},
		{"README.md", "no package embeds it", false},
		{"dev.log", "perhaps this program's own", false},
		{"hooks/NOTES.txt", "not embedded", false},
		{"hooks/hooks_test.go", "a test", false},
		{"hooks/.hooks.go.swp", "an editor's", false},
	} {
		if got := w.concerns(filepath.Join(dir, row.path)); got != row.want {
			t.Errorf("%s (%s): got %t", row.path, row.reason, got)
		}
	}
}
