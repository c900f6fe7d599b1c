// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A run tells of each law that applies, and of each object in order.
func TestProgress(t *testing.T) {
	c := broken(t, "P01")
	told, last, calls := map[Law]bool{}, 0, 0
	report := runCase(t, c, Objects(3), Progress(func(s Step) {
		told[s.Law] = true
		if s.Kind != "v1 Pod" || s.Objects != 3 || s.Object < last || s.Object > 3 || s.Calls < calls {
			t.Errorf("%+v after object %d and %d calls", s, last, calls)
		}
		last, calls = s.Object, s.Calls
	}))
	for _, l := range report.Laws {
		if l.Cases > 0 && !told[l.Law] {
			t.Errorf("%s has %d cases, of which nothing is told", l.Law, l.Cases)
		}
	}
	if last != 3 {
		t.Errorf("the last object told of is %d", last)
	}
}

// A report has the lines of the program that made it.
func TestLines(t *testing.T) {
	dir := t.TempDir()
	lines := Lines(
		func(seed int64, objects int) string { return fmt.Sprintf("try --seed %d --objects %d", seed, objects) },
		func(file string) string { return "try --replay " + filepath.Base(file) })
	report := runCase(t, broken(t, "P01"), Objects(2), Seed(7), Store(dir), lines)
	if report.Again != "try --seed 7 --objects 2" {
		t.Errorf("again: %s", report.Again)
	}
	for _, v := range report.Findings {
		if v.File != "" && v.Replay != "try --replay "+filepath.Base(v.File) {
			t.Errorf("%s: %s", v.Law, v.Replay)
		}
	}
	if out := text(report); !strings.Contains(out, "Again:  try --replay L1-") || strings.Contains(out, "idempotence.") {
		t.Error(out)
	}
}
