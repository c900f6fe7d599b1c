// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `// Package sample is one.
package sample

import "errors"

// Limit is documented.
const Limit = 3

// ErrSample is documented.
var ErrSample = errors.New("sample")

var hidden = 1

// Box is documented.
type Box[T any] struct {
	// Name is documented.
	Name string ` + "`json:\"name\"`" + `

	// Value is documented.
	Value T
	secret int
}

// Get does.
func (b *Box[T]) Get() (T, error) { return b.Value, nil }

func (b *Box[T]) get() {}

// Opener is documented.
type Opener interface {
	Open(name string) error
	close()
}

type unexported struct{ X int }

// NewBox returns a box.
func NewBox[T any](name string, values ...T) *Box[T] { return nil }

// Walk calls f for each number.
func Walk(f func(int) bool) { _ = hidden }
`

const snapshot = `package sample

const Limit = 3

var ErrSample = errors.New("sample")

func Walk(f func(int) bool)

type Box[T any] struct {
	Name  string ` + "`json:\"name\"`" + `
	Value T
	// contains filtered or unexported fields
}

func NewBox[T any](name string, values ...T) *Box[T]

func (b *Box[T]) Get() (T, error)

type Opener interface {
	Open(name string) error
	// contains filtered or unexported methods
}
`

// repository writes packages with these paths below pkg/ into a new folder and returns it.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, "pkg", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSnapshotHasTheExportedAPI(t *testing.T) {
	root := repository(t, map[string]string{
		"sample/sample.go":            source,
		"sample/sample_test.go":       "package sample\n\nfunc Exported() {}\n",
		"sample/internal/x/x.go":      "package x\n",
		"sample/sampletest/helper.go": "package sampletest\n\nfunc Help() {}\n",
	})
	if err := run(root, true, os.Stdout); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(filepath.Join(root, "docs", "api"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"sample.txt":            snapshot,
		"sample-sampletest.txt": "package sampletest\n\nfunc Help()\n",
	}
	if len(got) != len(want) {
		t.Errorf("got %d snapshots, want %d", len(got), len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s:\ngot:\n%s\nwant:\n%s", name, got[name], want[name])
		}
	}
}

func TestCompareReportsEachChange(t *testing.T) {
	rows := []struct {
		reason   string
		change   func(string) string
		wantLine string // "" if no difference is expected
	}{
		{"nothing changed", func(s string) string { return s }, ""},
		{"a comment and a blank line are no API", func(s string) string {
			return strings.Replace(s, "	Value T\n", "\n	// Value has more to say.\n	//\n	// A lot.\n	Value T\n", 1)
		}, ""},
		{"a body is no API", func(s string) string { return strings.Replace(s, "_ = hidden", "hidden++", 1) }, ""},
		{"an unexported name is no API", func(s string) string { return strings.ReplaceAll(s, "hidden", "secret") }, ""},
		{"a function went away", func(s string) string { return strings.Replace(s, "func Walk", "func walk", 1) }, "-func Walk(f func(int) bool)"},
		{"a parameter changed its type", func(s string) string { return strings.Replace(s, "name string, v", "name []byte, v", 1) },
			"+func NewBox[T any](name []byte, values ...T) *Box[T]"},
		{"a json tag changed", func(s string) string { return strings.Replace(s, `json:"name"`, `json:"title"`, 1) },
			"+	Name  string `json:\"title\"`"},
		{"a constant changed its value", func(s string) string { return strings.Replace(s, "Limit = 3", "Limit = 4", 1) }, "+const Limit = 4"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			root := repository(t, map[string]string{"sample/sample.go": source})
			if err := run(root, true, os.Stdout); err != nil {
				t.Fatal(err)
			}
			changed := filepath.Join(root, "pkg", "sample", "sample.go")
			if err := os.WriteFile(changed, []byte(row.change(source)), 0o644); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := run(root, false, &out)
			if row.wantLine == "" {
				if err != nil {
					t.Errorf("got %v\n%s", err, out.String())
				}
				return
			}
			if !errors.Is(err, errDiffers) {
				t.Errorf("got error %v, want errDiffers", err)
			}
			if !strings.Contains(out.String(), "\n"+row.wantLine+"\n") {
				t.Errorf("difference lacks the line %q:\n%s", row.wantLine, out.String())
			}
		})
	}
}

func TestRemovedPackageLeavesNoSnapshot(t *testing.T) {
	root := repository(t, map[string]string{"sample/sample.go": source, "other/other.go": "package other\n"})
	if err := run(root, true, os.Stdout); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "pkg", "other")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(root, false, &out); !errors.Is(err, errDiffers) || !strings.Contains(out.String(), "-package other") {
		t.Errorf("compare: got %v and\n%s", err, out.String())
	}
	if err := run(root, true, os.Stdout); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "docs", "api", "other.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("other.txt was not deleted: %v", err)
	}
}
