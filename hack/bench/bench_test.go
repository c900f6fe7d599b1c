// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/hack/bench/document"
	"github.com/admitkit/admitkit/hack/bench/subject"
)

// TestMain lets the test binary act as the server of the end-to-end measurements.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "-serve" {
		if err := serve(); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// BenchmarkAdmission measures the figures of the tables as Go benchmarks, for profiles and benchstat:
//
//	go test -run '^$' -bench 'Admission/2KB/mutate$/admitkit' -cpuprofile cpu.out
func BenchmarkAdmission(b *testing.B) {
	for _, size := range document.Sizes {
		b.Run(size.Name, func(b *testing.B) {
			for _, row := range subject.Rows(size) {
				b.Run(row.Name, func(b *testing.B) {
					for _, s := range row.Subjects {
						b.Run(strings.ReplaceAll(s.Name(), " ", "/"), func(b *testing.B) { benchmark(b, s) })
					}
				})
			}
		})
	}
}

func benchmark(b *testing.B, s *subject.Subject) {
	b.ReportAllocs()
	b.SetBytes(int64(len(s.Body)))
	for b.Loop() {
		if w := s.Call(); w.Code != http.StatusOK {
			b.Fatalf("HTTP %d: %.500s", w.Code, w.Body)
		}
	}
}

func TestCandidatesAgree(t *testing.T) {
	for _, size := range document.Sizes[:2] {
		for _, row := range subject.Rows(size) {
			if err := row.Verify(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestVerifyReportsAnotherObject(t *testing.T) {
	rows := subject.Rows(document.Sizes[0])
	noop, mutate := rows[1], rows[2]
	mutate.Subjects[3].Handler = noop.Subjects[1].Handler
	if err := mutate.Verify(); err == nil || !strings.Contains(err.Error(), "results in another object") {
		t.Errorf("Verify of a handler that does nothing returns %v", err)
	}
}

func TestReviewsHaveTheirSizes(t *testing.T) {
	want := map[string]int{"2KB": 2_000, "9KB": 9_000, "197KB": 197_000, "1.4MB": 1_400_000}
	for _, size := range document.Sizes {
		for _, body := range [][]byte{document.PodReview(size.Pod(), nil), document.DatabaseReview(size.Database(), nil)} {
			if n := len(body); n < want[size.Name]*9/10 || n > want[size.Name]*11/10 {
				t.Errorf("%s: a review has %d bytes", size.Name, n)
			}
		}
	}
}

// TestPageHasAPlaceForEveryTable runs a minimal measurement and updates the tables in a copy of
// docs/benchmarks/README.md. The copy must have the new tables, and as many end marks as the page.
func TestPageHasAPlaceForEveryTable(t *testing.T) {
	o := &options{rows: list{"validate"}, sizes: list{"2KB"}, rounds: 1, slice: 100 * time.Microsecond}
	r := newReport()
	for _, measure := range []func(*options) error{r.measureAdmissions, r.comparePatches, r.measureWire} {
		if err := measure(o); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("../../docs/benchmarks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.writeJSON(filepath.Join(t.TempDir(), "figures.json")); err != nil {
		t.Error(err)
	}
	for range 2 { // the second call must replace the tables of the first
		if err := r.refresh(file); err != nil {
			t.Fatal(err)
		}
	}
	refreshed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(page), "<!-- bench:")
	for _, want := range []string{head, "| admitkit projection | validate |", "| jsondiff of Go values |", "| 2KB | validate | floor |"} {
		if strings.Count(string(refreshed), want) == 0 {
			t.Errorf("the page lacks %q", want)
		}
	}
	if got, want := strings.Count(string(refreshed), "<!-- end -->"), strings.Count(string(page), "<!-- end -->"); got != want {
		t.Errorf("the page has %d marks for the end of a table, want %d", got, want)
	}
}

func TestTableAsTextAndMarkdown(t *testing.T) {
	tab := &table{title: "Title", head: []string{"name", "µs"}, left: 1}
	tab.add("a", "1.5")
	tab.add()
	tab.add("long", "10")
	var text, markdown strings.Builder
	tab.text(&text)
	tab.markdown(&markdown)
	if got, want := text.String(), "\nTitle\nname   µs\na     1.5\n\nlong   10\n"; got != want {
		t.Errorf("text:\n%s\nwant:\n%s", got, want)
	}
	if got, want := markdown.String(), "\nTitle\n\n| name | µs |\n|---|---:|\n| a | 1.5 |\n| long | 10 |\n"; got != want {
		t.Errorf("markdown:\n%s\nwant:\n%s", got, want)
	}
}

func TestTargetsReferToMeasuredRows(t *testing.T) {
	r := &Report{}
	for _, size := range document.Sizes[:3] {
		for _, row := range subject.Rows(size) {
			for _, s := range row.Subjects {
				r.Admissions = append(r.Admissions, Figure{Row: row.Name, Size: row.Size, Candidate: s.Candidate, Shape: s.Shape, Ratio: 1000})
			}
		}
	}
	met := 0
	for i := range r.Admissions {
		met += strings.Count(r.Admissions[i].against(), "✓")
	}
	if met != len(targets) {
		t.Errorf("%d figures meet a target, want %d", met, len(targets))
	}
	if got := len(r.budgets().rows); got != len(allocBudgets) {
		t.Errorf("%d rows of allocations, want %d", got, len(allocBudgets))
	}
}
