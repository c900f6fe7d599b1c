// SPDX-License-Identifier: Apache-2.0

// Versions runs the tests with a real API server on each supported release of Kubernetes. It builds the API servers,
// prints a table, and writes it to docs/versions.md if all tests ran on all releases.
//
//	go run ./hack/versions               all releases
//	go run ./hack/versions 1.35 1.37     only these releases; docs/versions.md does not change
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/apiserver/build"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// page is the file with the table.
const page = "docs/versions.md"

// A suite is a package with tests that use an API server.
type suite struct {
	title, dir string
	run        string // a regular expression for the names of the tests, or empty for all
	race       bool
}

var suites = []suite{
	{"end-to-end specs", "./test/e2e", "", true},
	{"restarts, rotations, overload", "./test/proof", "", false},
	{"admission chain against the server", "./pkg/chain", "", false},
	{"patches, decoding and field paths against the server", "./test/differential", "", false},
	{"validation against the server", "./internal/k8svalidation", "", false},
	{"`explain` against the server", "./internal/cli/explain", "", false},
	{"`lint` against the server", "./pkg/lint", "", false},
	{"`doctor` on broken clusters", "./internal/cli/doctor", "", false},
	{"`audit`", "./internal/cli/audit", "", false},
	{"command line, live", "./cmd/admitkit", "Static|Live|Served|Transcripts/(apiserver|audit|dev|doctor|explain|manifests|record|replay|verify)", false},
	{"gallery beside the built-in controllers", "./examples/gallery", "", false},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, chosen []string) error {
	releases := build.Releases()
	if len(chosen) > 0 {
		releases = nil
		for _, name := range chosen {
			r, err := build.Choose(name)
			if err != nil {
				return err
			}
			releases = append(releases, r)
		}
	}
	t := &table{}
	for _, r := range releases {
		version := r.Version()
		dir, err := build.Build(ctx, build.Options{Kubernetes: version, Note: say})
		if err != nil {
			return err
		}
		t.versions = append(t.versions, version)
		for i, s := range suites {
			began := time.Now()
			result, err := s.test(ctx, append(os.Environ(), build.Assets+"="+dir, need.Variable+"=required"))
			if err != nil {
				return fmt.Errorf("%s %s: %w", version, s.dir, err)
			}
			say("%s %s: %v in %s", version, s.dir, result, time.Since(began).Round(time.Second))
			t.add(i, result)
		}
	}
	fmt.Print(t.text(suites))
	if failed := t.failures(); len(failed) > 0 {
		return fmt.Errorf("failed or skipped without a declared reason: %s", strings.Join(failed, ", "))
	}
	if len(chosen) > 0 {
		return nil
	}
	return t.writeInto(page)
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "versions: "+format+"\n", args...) }
