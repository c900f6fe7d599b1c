// SPDX-License-Identifier: Apache-2.0

//go:build unix

package scratch

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLeftovers checks that New removes a folder only after its process has ended, and removes nothing else.
func TestLeftovers(t *testing.T) {
	parent := t.TempDir()
	killed, err := New(parent, "admitkit-x-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed.Path, "program"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	others := []string{"admitkit-x-of-somebody", "admitkit-y-1", "other"}
	for _, name := range others {
		if err := os.Mkdir(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	running, err := New(parent, "admitkit-x-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.Path); err != nil {
		t.Fatalf("a folder in use was removed: %v", err)
	}
	killed.unlock() // as the operating system does when a process ends
	last, err := New(parent, "admitkit-x-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.Path); !os.IsNotExist(err) {
		t.Errorf("the folder was not removed: %v", err)
	}
	if _, err := os.Stat(running.Path); err != nil {
		t.Errorf("a folder in use was removed: %v", err)
	}
	running.Remove()
	last.Remove()
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != len(others) {
		t.Errorf("there are %v, %v; want %v", entries, err, others)
	}
}
