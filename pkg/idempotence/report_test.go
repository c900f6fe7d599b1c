// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/junit"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/test/corpus"
)

// escapes matches the escape sequences that set the colours of a terminal.
var escapes = regexp.MustCompile("\x1b\\[[0-9]*m")

var update = flag.Bool("update", false, "write the golden files anew")

// reportPatterns maps the name of each report in testdata/report to the broken webhook that it is about.
var reportPatterns = map[string]string{
	"grows":   "P01 blind append of a sidecar",
	"late":    "P10 early return when its volume exists",
	"part":    "P11 the user mounts that path from another volume",
	"removes": "P13 replaces the whole map",
	"rival":   "P21 keeps moving itself to the front",
	"impure":  "P22 process counter",
}

// replayed returns the report of a run that replays one stored case. Such a report does not change when the harness
// generates other objects.
func replayed(t *testing.T, name string) *Report {
	t.Helper()
	patterns := corpus.Patterns()
	i := slices.IndexFunc(patterns, func(c corpus.Case) bool { return c.Name == reportPatterns[name] })
	if i < 0 {
		t.Fatalf("there is no pattern %q", reportPatterns[name])
	}
	report := runCase(t, patterns[i], Options{Objects: 12, Replay: filepath.Join("testdata", "report", name+".json")})
	report.Checks, report.Calls = 0, 0 // the number of calls is not tested here
	return report
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	file = filepath.Join("testdata", "report", file)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is another one (-update writes it anew):\n%s", file, got)
	}
}

func TestTextReports(t *testing.T) {
	for name := range reportPatterns {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".txt", []byte(text(replayed(t, name))))
		})
	}
}

func TestColours(t *testing.T) {
	report := replayed(t, "late")
	var plain, coloured strings.Builder
	if err := report.WriteText(&coloured, true); err != nil {
		t.Fatal(err)
	}
	plain.WriteString(escapes.ReplaceAllString(coloured.String(), ""))
	if plain.String() == coloured.String() || plain.String() != text(report) {
		t.Errorf("without its colours the report is\n%s\nwant\n%s", plain.String(), text(report))
	}
}

// The text report escapes control characters in names and in responses of the webhook.
func TestTextReportIsVisible(t *testing.T) {
	const evil = "a\x1b[2Jb\u202ec\u009b1m"
	doc := map[string]any{evil: evil}
	raw := json.RawMessage(`[{"op":"add","path":"/\u202e","value":"` + "\u202e" + `"},{"op":"add","path":"/\u001b[2J"}]`)
	report := &Report{
		Webhooks: []string{evil}, Kinds: []string{evil}, Notes: []Reason{{Code: ReasonNote, Detail: evil}}, Incomplete: []Reason{{Code: ReasonNote, Detail: evil}},
		Wording:    Wording{RunAgain: func(*Report) string { return evil }, ReplayCase: func(string) string { return evil }},
		Laws:       []LawResult{{Law: L1, Kind: evil, Verdict: Inconclusive, Reason: &Reason{Code: ReasonNote, Detail: evil}}},
		Exceptions: []Exception{{Path: evil, Reason: evil}},
		Replayed:   []Replayed{{File: evil, Law: L1, Verdict: Passes, Reason: &Reason{Code: ReasonNote, Detail: evil}}, {File: evil, Law: L1, Verdict: Inconclusive, Reason: &Reason{Code: ReasonNote, Detail: evil}}},
		Findings: []*Violation{{
			Law: L4a, Kind: evil, Verdict: Fails, Summary: evil, Cause: evil, Fix: evil, File: evil,
			Case:  Case{Object: doc, Before: []any{doc}, Rival: evil, Edits: []Edit{{What: Put, Path: Path{{Name: evil}}, Value: evil}}},
			Calls: []Exchange{{Request: 1, About: evil, Webhook: evil, Outcome: evil, Patch: raw, Offending: []int{1}}, {Request: 2, Webhook: "other"}},
			Difference: &Difference{From: evil, To: evil, Changes: []Change{
				{Kind: string(tree.Moved), Path: evil, Old: raw, New: raw}, {Path: evil, Old: raw, New: json.RawMessage(`"` + "\u202e" + `"`)}}},
		}},
	}
	if plain := text(report); plain != textutil.Visible(plain) {
		t.Errorf("%q", plain)
	}
	var coloured strings.Builder
	if err := report.WriteText(&coloured, true); err != nil || escapes.ReplaceAllString(coloured.String(), "") != text(report) {
		t.Errorf("%v, with colours it is\n%q", err, coloured.String())
	}
}

func TestJSONReport(t *testing.T) {
	var out bytes.Buffer
	report := replayed(t, "late")
	if err := report.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "late.report.json", out.Bytes())
	var back Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if again := text(&back); again != text(report) {
		t.Errorf("what comes back reads\n%s", again)
	}
}

func TestJUnitReport(t *testing.T) {
	var out bytes.Buffer
	report := replayed(t, "late")
	report.Laws = append(report.Laws, LawResult{Law: L6, Kind: "v1 Pod", Verdict: NotApplicable, Reason: &Reason{Code: ReasonNote, Detail: "a <reason>"}},
		LawResult{Law: L9, Kind: "v1 Pod", Verdict: Inconclusive, Reason: &Reason{Code: ReasonNote, Detail: "another"}},
		LawResult{Law: L1, Kind: "v1 Pod", Verdict: Passes, Cases: 3})
	report.Findings = append(report.Findings, &Violation{Law: L1, Kind: "v1 Pod", Verdict: Advice, Summary: "a <b> & \x01", Case: Case{Object: map[string]any{}}})
	if err := report.WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "late.xml", out.Bytes())
	var back junit.Suites
	if err := xml.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if s := back.Suite; s.Tests != len(s.Cases) || s.Tests != 4 || s.Failures != 1 || s.Skipped != 2 {
		t.Errorf("%d tests, %d failures, %d skipped, %d cases", s.Tests, s.Failures, s.Skipped, len(s.Cases))
	}
}

// TestEveryLawIsExplained checks that each law has a statement, a cause and a fix.
func TestEveryLawIsExplained(t *testing.T) {
	for _, law := range Laws {
		if law.Statement() == "" || explain(law, "").cause == "" && explain(law, "grows").cause == "" && explain(law, FailureServerError).cause == "" && explain(law, "does not apply").cause == "" {
			t.Errorf("%s has no likely cause", law)
		}
		if explain(law, "").fix == "" {
			t.Errorf("%s has no usual fix", law)
		}
	}
}

func TestProblemPaths(t *testing.T) {
	got := objects.ProblemPaths(`refused: spec.containers[2].name: Duplicate value: "a.b"; metadata.annotations[example.com/a~b]: Invalid value: "x"; spec.volumes[0]: Required value`)
	want := []string{"/spec/containers/2/name", "/metadata/annotations/example.com~1a~0b", "/spec/volumes/0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPassesReportsWhatIsUnknown checks the line "passes:" of a report without failures. The line must count the laws
// that pass, and list laws that were not tried, or only in part. Laws that do not apply or are excluded are not listed.
func TestPassesReportsWhatIsUnknown(t *testing.T) {
	result := func(law Law, verdict Verdict, code ReasonCode) LawResult {
		l := LawResult{Law: law, Kind: "v1 Pod", Verdict: verdict}
		if code != "" {
			l.Reason = &Reason{Code: code}
		}
		return l
	}
	for _, c := range []struct {
		laws []LawResult
		want string
	}{
		{[]LawResult{result(L1, Passes, ""), result(L2, Passes, ""), result(L6, NotApplicable, ReasonNoUpdateRule)}, "all 2 laws that apply pass"},
		{[]LawResult{result(L1, Passes, ""), result(L6, NotApplicable, ReasonNoUpdateRule)}, "the one law that applies passes"},
		{[]LawResult{result(L1, Passes, ""), result(L2, Passes, ""), result(L7, Passes, ReasonEffectsUnwatched), result(L9, Inconclusive, "")},
			"3 laws pass, 1 of them in part: dry runs (L7); not tried: unknown fields (L9)"},
		{[]LawResult{result(L1, Passes, ""), result(L1, Inconclusive, ReasonFewCases)}, "1 law passes in part: second call (L1)"},
		{[]LawResult{result(L1, Passes, ""), result(L2, NotApplicable, ReasonLawExcluded)}, "1 law passes; other laws were excluded"},
		{[]LawResult{result(L1, Passes, ""), result(L3, Passes, ""), result(L2, NotApplicable, ReasonLawExcluded)}, "2 laws pass; other laws were excluded"},
		{[]LawResult{result(L6, NotApplicable, ReasonNoUpdateRule), result(L2, NotApplicable, ReasonLawExcluded)}, ""},
	} {
		_, got, _ := strings.Cut(text(&Report{Laws: c.laws}), "\npasses: ")
		if got = strings.Join(strings.Fields(got), " "); got != c.want { // joins wrapped lines
			t.Errorf("%v: %q, want %q", c.laws, got, c.want)
		}
	}
}

func TestWhereToBegin(t *testing.T) {
	for _, c := range []struct {
		laws []Law
		mode FailureMode // of the second finding
		want string
	}{
		{[]Law{L1}, "", ""},
		{[]Law{L1, L4a, L10}, "", "start with minimal patches (L10)"},
		{[]Law{L1, L3}, "", "start with same request (L3)"},
		{[]Law{L3, L2}, FailureServerError, "start with own output (L2)"},
		{[]Law{L1, L2}, FailureDenied, "start with second call (L1)"},
		{[]Law{L7, L6}, "", "start with updates (L6)"},
	} {
		r := &Report{}
		for i, law := range c.laws {
			r.Findings = append(r.Findings, &Violation{Law: law, Verdict: Fails})
			if i == 1 {
				r.Findings[i].FailureMode = c.mode
			}
		}
		if got := text(r); !strings.Contains(got, c.want) || strings.Contains(got, "One mistake") != (c.want != "") {
			t.Errorf("%v: no %q in\n%s", c.laws, c.want, got)
		}
	}
}
