// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/problem"
)

func TestBuildErrors(t *testing.T) {
	dir := module(t, `
-- empty/README.md --
no Go here
-- tests/a_test.go --
package tests
-- program/main.go --
package main

func main() {}
-- none/none.go --
package none

var Number = 3

func New(name string) string { return name }
-- unexported/a.go --
package unexported

import "github.com/admitkit/admitkit/pkg/webhook"

var hook *webhook.Hook

func hooks() []*webhook.Hook { return nil }
-- misnamed/a.go --
package misnamed

import "github.com/admitkit/admitkit/pkg/webhook"

var Version = "1"

func All() []*webhook.Hook { return nil }
-- arguments/a.go --
package arguments

import "github.com/admitkit/admitkit/pkg/webhook"

func Hooks(image string) []*webhook.Hook { return nil }
-- broken/a.go --
package broken

import "github.com/admitkit/admitkit/pkg/webhook"

func Hooks() []*webhook.Hook { return wrong }
-- syntax/a.go --
package syntax

func Hooks( {
-- two/a.go --
package two
-- two/b.go --
package three
-- missing/a.go --
package missing

import _ "example.com/nowhere/at/all"

var A = 1
-- null/a.go --
package null

import "github.com/admitkit/admitkit/pkg/webhook"

var Pull *webhook.Hook
-- failing/a.go --
package failing

import (
	"errors"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func Hooks() ([]*webhook.Hook, error) { return nil, errors.New("no image is set") }
-- panics/a.go --
package panics

import "github.com/admitkit/admitkit/pkg/webhook"

func init() { panic("not like this") }

var Pull *webhook.Hook
-- exits/a.go --
package exits

import (
	"fmt"
	"os"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func init() {
	fmt.Println("$IMAGE is not set")
	os.Exit(7)
}

var Pull *webhook.Hook
`)
	rows := []struct {
		pkg, reason string
		want        []string
		hint        string
	}{
		{"./nowhere", "there is no such folder", []string{"the folder ./nowhere does not exist"}, "give the folder with the hooks"},
		{"empty/README.md", "a file", []string{"empty/README.md is a file, not a folder with a Go package"}, "give the folder with the hooks"},
		{"./empty", "no Go in it", []string{"the folder of ./empty has no Go files"}, "give the folder with the hooks"},
		{"./tests", "nothing but tests", []string{"there are no hooks in ./tests"}, "func Hooks() []*webhook.Hook"},
		{"./...", "more than one", []string{"./... matches "}, "give the folder with the hooks"},
		{"example.com/shop/nowhere", "not in this module", []string{"cannot load the Go package example.com/shop/nowhere: "}, ""},
		{"-exec=touch", "no flag of the go command", []string{`"-exec=touch" is neither a folder nor the import path of a Go package`}, "give the folder with the hooks"},
		{"./program", "a program cannot be imported", []string{"./program is a program (package main)"}, "move the hooks to their own package"},
		{"./none", "nothing that is a hook", []string{"there are no hooks in ./none"}, "func Hooks() []*webhook.Hook"},
		{"./unexported", "not exported", []string{"there are no hooks in ./unexported"}, "func Hooks() []*webhook.Hook"},
		{"./misnamed", "of another name", []string{"there are no hooks in ./misnamed"}, "rename func All() []*webhook.Hook to Hooks"},
		{"./arguments", "unknown parameters", []string{"./arguments: admitkit cannot call the function Hooks: its parameters or results are not supported"}, "declare it as func Hooks() []*webhook.Hook"},
		{"./broken", "the compiler's line, as it is seen from here", []string{"cannot build the hooks of ./broken:", "broken/a.go:5:39: undefined: wrong"}, ""},
		{"./syntax", "the parser's", []string{"./syntax", "syntax/a.go:3:13: expected ')', found '{'"}, ""},
		{"./two", "two packages in a folder", []string{"./two", "found packages two (a.go) and three (b.go)"}, ""},
		{"./missing", "a package that is not there", []string{"./missing", "example.com/nowhere/at/all"}, ""},
		{"./null", "nothing in the variable", []string{"the hooks of example.com/shop/null have errors:\nPull is nil"}, ""},
		{"./failing", "the error of Hooks", []string{"the hooks of example.com/shop/failing have errors:\nHooks: no image is set"}, ""},
		{"./panics", "the panic is shown", []string{"the program that runs the hooks of example.com/shop/panics has ended: exit status 2", "panic: not like this"}, ""},
		{"./exits", "the last lines of its output", []string{"has ended: exit status 7\n$IMAGE is not set"}, ""},
	}
	for _, row := range rows {
		t.Run(row.pkg, func(t *testing.T) {
			p, err := Build(t.Context(), Options{Dir: dir, Package: row.pkg})
			if err == nil {
				p.Close()
				t.Fatalf("no error: %s", row.reason)
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant %q: %s", err, want, row.reason)
				}
			}
			if hints := strings.Join(problem.Hints(err), "\n"); !strings.Contains(hints, row.hint) || (hints == "") != (row.hint == "") {
				t.Errorf("hints %q, want %q: %s", hints, row.hint, row.reason)
			}
		})
	}
}

func TestBuildReportsIncompleteModules(t *testing.T) {
	t.Run("no module", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "hooks.go"), "package hooks\n\nvar A = 1\n")
		expect(t, dir, ". is not in a Go module", "go mod init example.com/NAME")
	})
	t.Run("without admitkit", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "go.mod"), "module example.com/shop\n\ngo 1.26.0\n")
		write(t, filepath.Join(dir, "hooks.go"), "package hooks\n\nimport \"github.com/admitkit/admitkit/pkg/webhook\"\n\nvar A *webhook.Hook\n")
		expect(t, dir, "the module of . does not require github.com/admitkit/admitkit", "go mod edit -replace=github.com/admitkit/admitkit=CHECKOUT && go mod tidy  # CHECKOUT is a clone of admitkit, which is not published yet")
	})
	t.Run("go.sum is missing", func(t *testing.T) {
		dir := module(t, shop)
		if err := os.Remove(filepath.Join(dir, "go.sum")); err != nil {
			t.Fatal(err)
		}
		_, err := Build(t.Context(), Options{Dir: dir, Package: "./internal/hooks"})
		if err == nil || !strings.Contains(err.Error(), "is incomplete") || strings.Join(problem.Hints(err), "") != "go mod tidy" {
			t.Errorf("got %v, hints %q", err, problem.Hints(err))
		}
	})
	t.Run("no go command", func(t *testing.T) {
		dir := module(t, shop)
		t.Setenv("PATH", t.TempDir())
		_, err := Build(t.Context(), Options{Dir: dir, Package: "./internal/hooks"})
		if err == nil || !strings.Contains(err.Error(), "the go command is not installed") || strings.Join(problem.Hints(err), "") != "https://go.dev/doc/install" {
			t.Errorf("got %v, hints %q", err, problem.Hints(err))
		}
	})
}

func expect(t *testing.T, dir, want, hint string) {
	t.Helper()
	_, err := Build(t.Context(), Options{Dir: dir, Package: "."})
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Join(problem.Hints(err), "\n") != hint {
		t.Errorf("got %v, hints %q", err, problem.Hints(err))
	}
}

func TestFailedBuildLeavesNoFiles(t *testing.T) {
	dir := module(t, "-- broken/a.go --\npackage broken\n\nvar A = wrong\n"+shop)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	if _, err := Build(t.Context(), Options{Dir: dir, Package: "./broken"}); err == nil {
		t.Error("no error")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(canceled, Options{Dir: dir, Package: "./internal/hooks"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := tree(t, temporary); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
}
