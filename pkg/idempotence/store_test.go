// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"

	"github.com/admitkit/admitkit/test/corpus"
)

// moody returns a webhook that appends a sidecar without checking whether the Pod has it, as long as broken is true.
// Otherwise the webhook is correct.
func moody(broken *atomic.Bool) Subject {
	all := slices.Concat(corpus.Patterns(), corpus.Lookalikes())
	find := func(prefix string) corpus.Case {
		return all[slices.IndexFunc(all, func(c corpus.Case) bool { return strings.HasPrefix(c.Name, prefix) })]
	}
	bad, good := find("P01 blind append of a sidecar"), find("P22 constant")
	return Handler(bad.Webhook, func() http.Handler {
		if broken.Load() {
			return bad.New()
		}
		return good.New()
	})
}

func stored(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestStoredCases(t *testing.T) {
	var broken atomic.Bool
	dir := t.TempDir()
	run := func(file string) *Report {
		t.Helper()
		report, err := Run(t.Context(), moody(&broken), Options{Objects: 4, Store: dir, Replay: file})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	broken.Store(true)
	first := run("")
	files := stored(t, dir)
	// Advice is not stored, nor a case that needs the whole run.
	notStored := func(v *Violation) bool { return v.Verdict == Advice || v.Case.Variant == Variant(laws.AfterRun) }
	findings := slices.DeleteFunc(slices.Clone(first.Findings), notStored)
	if len(files) == 0 || len(files) != len(findings) || len(first.Replayed) != 0 {
		t.Fatalf("%d files for %d findings, %d replayed", len(files), len(findings), len(first.Replayed))
	}
	second := run("")
	if now := stored(t, dir); !slices.Equal(now, files) {
		t.Errorf("the second run has stored more: %q", now)
	}
	if len(second.Replayed) != len(files) || slices.ContainsFunc(second.Replayed, func(r Replayed) bool { return r.Verdict != Fails }) {
		t.Errorf("of %d files these were replayed: %+v", len(files), second.Replayed)
	}
	for _, v := range slices.DeleteFunc(slices.Clone(second.Findings), notStored) {
		if v.File == "" || !strings.Contains(second.ReplayLine(v), v.File) {
			t.Errorf("%s: file %q, line %q", v.Law, v.File, second.ReplayLine(v))
			continue
		}
		one := run(v.File)
		if len(one.Findings) != 1 || one.Findings[0].Law != v.Law || len(one.Laws) != 1 || one.Laws[0].Verdict != Fails || len(one.Incomplete) > 0 {
			t.Errorf("%s alone:\n%s", v.File, text(one))
		}
	}
	broken.Store(false)
	mended := run("")
	if !mended.OK() || len(mended.Replayed) != len(files) || strings.Count(text(mended), "mended: ") != len(files) {
		t.Errorf("once it is mended:\n%s", text(mended))
	}
	if now := stored(t, dir); !slices.Equal(now, files) {
		t.Errorf("files are gone: %q, want %q", now, files)
	}
	if one := run(files[0]); len(one.Laws) != 1 || one.Laws[0].Verdict != Passes || !one.OK() {
		t.Errorf("one that is mended:\n%s", text(one))
	}
}

func TestStoresNothingByDefault(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	t.Chdir(t.TempDir())
	if _, err := Run(t.Context(), moody(&broken), Options{Objects: 2}); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir("."); len(files) > 0 {
		t.Errorf("the run has left %v", files)
	}
}

func TestStoreThatCannotBeWritten(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), moody(&broken), Options{Objects: 2, Store: file})
	if err != nil || len(report.Findings) == 0 || !strings.Contains(text(report), "cannot be stored") {
		t.Errorf("%v, report:\n%s", err, text(report))
	}
}

func TestBadCases(t *testing.T) {
	var broken atomic.Bool
	dir := t.TempDir()
	folder := filepath.Join(dir, folderOf([]string{moody(&broken).webhooks[0].Name}))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"L1-text.json":   `no JSON`,
		"L1-law.json":    `{"case":{"law":"L99","object":{"apiVersion":"v1","kind":"Pod"}}}`,
		"L1-kind.json":   `{"case":{"law":"L1","object":{}}}`,
		"L1-object.json": `{"case":{"law":"L1","object":{"apiVersion":"v1","kind":"Pod"}}}`,
		"L1-other.json":  `{"case":{"law":"L1","object":{"apiVersion":"v1","kind":"ConfigMap"}}}`,
		"L12-rival.json": `{"case":{"law":"L12","rival":"nobody","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Run(t.Context(), moody(&broken), Options{Objects: 4, Store: dir})
	if err != nil || !report.OK() {
		t.Fatal(err)
	}
	if n := strings.Count(text(report), "not replayed: "); n != 6 || slices.ContainsFunc(report.Replayed, func(r Replayed) bool { return r.Reason == nil }) {
		t.Errorf("%d were not replayed:\n%s", n, text(report))
	}
	for _, file := range append(stored(t, dir)[:3], "none.json") {
		if _, err := Run(t.Context(), moody(&broken), Options{Replay: file}); err == nil && !strings.Contains(file, "object") {
			t.Errorf("%s is replayed", file)
		}
	}
}

func TestCaseJSON(t *testing.T) {
	const want = `{"law":"L5","operation":"CREATE","object":{"apiVersion":"v1","big":9007199254740993,"kind":"Pod"},` +
		`"before":[{"n":1}],"edits":[{"what":"put","path":["spec","n"],"value":9007199254740993},{"what":"remove","path":["spec"]}],"variant":"few"}`
	var c Case
	if err := json.Unmarshal([]byte(want), &c); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(c); err != nil || string(got) != want {
		t.Errorf("%v: comes back as\n%s, want\n%s", err, got, want)
	}
}

func TestFolderOf(t *testing.T) {
	for name, want := range map[string]string{"a.example.com": "a.example.com", "../../etc": "_.._etc", "a b/c": "a_b_c", "..": ""} {
		if got := folderOf([]string{name}); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzCase(f *testing.F) {
	files, err := filepath.Glob("testdata/report/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var c storedCase
		if json.Unmarshal(content, &c) != nil || c.Case.Object == nil {
			return
		}
		encoded, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again storedCase
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatalf("%s does not come back: %v", encoded, err)
		}
	})
}
