// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgress sets Options.Progress. The run must report each law that it checks, and the objects in order.
func TestProgress(t *testing.T) {
	c := broken(t, "P01")
	reported, last, calls := map[Law]bool{}, 0, 0
	report := runCase(t, c, Options{Objects: 3, Progress: func(s Step) {
		reported[s.Law] = true
		if s.Kind != "v1 Pod" || s.Objects != 3 || s.Object < last || s.Object > 3 || s.Calls < calls {
			t.Errorf("%+v after object %d and %d calls", s, last, calls)
		}
		last, calls = s.Object, s.Calls
	}})
	for _, l := range report.Laws {
		if l.Cases > 0 && !reported[l.Law] {
			t.Errorf("%s has %d cases, but its progress was not reported", l.Law, l.Cases)
		}
	}
	if last != 3 {
		t.Errorf("the last reported object is %d", last)
	}
}

// TestWording sets Report.Wording. The text and the JSON of the report must use its hints and command lines.
func TestWording(t *testing.T) {
	report := runCase(t, broken(t, "P01"), Options{Objects: 2, Seed: 7, Store: t.TempDir()})
	if want := "idempotence.Options{Seed: 7, Objects: 2}"; report.AgainLine() != want {
		t.Errorf("again: %s, want %s", report.AgainLine(), want)
	}
	report.Wording = Wording{
		Hints:      Hints{ReasonEffectsUnwatched: "watch it with --observe"},
		RunAgain:   func(r *Report) string { return fmt.Sprintf("try --seed %d --objects %d", r.Seed, r.MaxObjects) },
		ReplayCase: func(file string) string { return "try --replay " + filepath.Base(file) },
	}
	if want := "try --seed 7 --objects 2"; report.AgainLine() != want {
		t.Errorf("again: %s, want %s", report.AgainLine(), want)
	}
	out := strings.Join(strings.Fields(text(report)), " ")
	if !strings.Contains(out, "Again: try --replay L1-") || !strings.Contains(out, "watch it with --observe") || strings.Contains(out, "idempotence.") {
		t.Error(out)
	}
	var encoded strings.Builder
	if err := report.WriteJSON(&encoded); err != nil || !strings.Contains(encoded.String(), "watch it with --observe") {
		t.Errorf("%v\n%s", err, encoded.String())
	}
}
