// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/hack/bench/document"
	"github.com/admitkit/admitkit/hack/bench/quality"
	"github.com/admitkit/admitkit/hack/bench/subject"
	"github.com/admitkit/admitkit/hack/bench/wire"
)

// minimal returns options for the smallest measurement with these names.
func minimal(parts, rows, sizes, shapes string) *options {
	o := &options{rounds: 1, slice: 100 * time.Microsecond}
	for l, text := range map[*list]string{&o.parts: parts, &o.rows: rows, &o.sizes: sizes, &o.shapes: shapes} {
		_ = l.Set(text)
	}
	return o
}

func TestUnknownNamesAreErrors(t *testing.T) {
	for _, c := range []struct {
		reason string
		o      *options
		want   string
	}{
		{"a part", minimal("nothing", "", "", ""), `-parts: unknown name "nothing", want one of admissions, patches, wire`},
		{"a row", minimal("", "foo", "", ""), `-rows: unknown name "foo", want one of validate, noop, mutate, mutate-prepend, update, noop-unknown, mutate-unknown`},
		{"one size of two", minimal("", "", "2KB,9kb", ""), `-sizes: unknown name "9kb", want one of 2KB, 9KB, 197KB, 1.4MB`},
		{"a shape", minimal("", "", "", "typed,map"), `-shapes: unknown name "map", want one of typed, projection, unstructured, custom`},
		{"two unknown names", minimal("x", "y", "", ""), `-parts: unknown name "x", want one of admissions, patches, wire` + "\n" +
			`-rows: unknown name "y", want one of validate, noop, mutate, mutate-prepend, update, noop-unknown, mutate-unknown`},
		{"nothing left to measure", minimal("wire", "update", "", ""), "nothing to measure: end to end, bench measures only validate, noop and mutate, up to 197KB"},
	} {
		if err := run(c.o); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.reason, err, c.want)
		}
	}
}

func TestFlagsAcceptAllRowsAndShapes(t *testing.T) {
	var rows, shapes list
	for _, row := range subject.Rows(document.Sizes[0]) {
		rows = append(rows, row.Name)
		for _, s := range row.Subjects {
			if s.Shape != "" && !slices.Contains(shapes, s.Shape) {
				shapes = append(shapes, s.Shape)
			}
		}
	}
	slices.Sort(shapes)
	if !slices.Equal(rows, rowNames) || !slices.Equal(shapes, slices.Sorted(slices.Values(shapeNames))) {
		t.Errorf("there are rows %q and shapes %q", rows, shapes)
	}
}

func TestLegendExplainsOnlyThePrintedTables(t *testing.T) {
	const page = "see docs/performance.md"
	if got := (&Report{Patches: make([]quality.Result, 1)}).legend(); got != page {
		t.Errorf("the legend for patches is %q", got)
	}
	for _, r := range []*Report{{Admissions: make([]Figure, 1)}, {Wire: make([]wire.Figure, 1)}} {
		got := r.legend()
		for _, want := range []string{"floor: ", "harness: ", "in brackets: ", page} {
			if !strings.Contains(got, want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one line with %q", got, want)
			}
		}
	}
}

// TestGobenchChecksOldFirst checks that `make gobench` rejects an unusable file OLD before it measures. The benchmark that
// it selects does not exist, so even a failing test measures nothing.
func TestGobenchChecksOldFirst(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for old, want := range map[string]string{
		"missing.txt":          "OLD=missing.txt: no such file",
		".cache/bench/new.txt": "OLD=.cache/bench/new.txt",
	} {
		cmd := exec.CommandContext(t.Context(), "make", "-C", root, "gobench", "OLD="+old, "BENCH=NoSuchBenchmark")
		cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "ok  ") {
			t.Errorf("%v: %s, want %q without a measurement", err, out, want)
		}
	}
}
