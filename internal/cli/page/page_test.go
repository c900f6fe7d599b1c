// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

func render(t testing.TB, p Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// full returns a page with the text in every field.
func full(text string) Page {
	f := Finding{
		ID: text, Law: text, Webhooks: []string{text, "b"}, Kind: text, Badge: text, Title: text, Summary: text, Cause: text, Fix: text, Again: text,
		Changes: &Changes{From: text, To: text, List: []Change{{text, text, text}}},
		Steps: []Step{{
			Title: text, Who: text, Outcome: text, Facts: []Fact{{text, text}}, Text: text,
			Patch: []Operation{{text, true}}, Diff: &Diff{Before: "a: " + text + "\nb: 1", After: "a: 1\n" + text},
		}},
	}
	return Page{
		Title: text, Summary: text, Facts: []Fact{{text, text}}, Notes: []string{text}, LawName: text,
		Tables:   []Table{{Title: text, Text: text, Columns: []Column{{Name: text}}, Rows: [][]Cell{{{Text: text, To: text}}, {{Text: text}}}}},
		Findings: []Finding{f, {Law: "L1", Webhooks: []string{"b"}}},
	}
}

// shape returns the elements and attributes of a page without text and values.
func shape(t testing.TB, page string) string {
	t.Helper()
	var b strings.Builder
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				t.Fatal(z.Err())
			}
			return b.String()
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			token := z.Token()
			fmt.Fprintf(&b, "<%d %s", token.Type, token.Data)
			for _, a := range token.Attr {
				fmt.Fprintf(&b, " %s", a.Key)
			}
			b.WriteString(">")
		case html.CommentToken:
			b.WriteString("<!>")
		}
	}
}

// FuzzWrite checks that no text adds an element or attribute to the page.
func FuzzWrite(f *testing.F) {
	for _, text := range []string{
		"<script>alert(1)</script>", `" onload="x`, "</style><b>", "<!--", "]]>", "javascript:x", "{{.}}", "\x00\xff", "\u202e", "&lt;b&gt;", "</title>", "</pre>",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > longValue/4 || strings.TrimSpace(text) == "" {
			return // long text is folded and empty text is not shown, which changes the shape
		}
		plain := strings.Map(func(c rune) rune {
			if c == '\n' || c == ' ' || c == ':' {
				return c
			}
			return 'x'
		}, textutil.Visible(text))
		got := render(t, full(text))
		// The mark elements inside lines depend on the words, so the function lines removes these elements.
		lines := func(s string) string { return strings.NewReplacer("<2 mark>", "", "<3 mark>", "").Replace(shape(t, s)) }
		if strings.Contains(text, "\n") || strings.Contains(text, ":") {
			if strings.Contains(lines(got), "script") {
				t.Errorf("%q: a script", text)
			}
			return
		}
		if want := lines(render(t, full(plain))); lines(got) != want && text != "b" && text != "L1" && !strings.HasPrefix(text, "1") {
			t.Errorf("%q makes other elements than %q does:\n%s\n%s", text, plain, lines(got), want)
		}
	})
}

// TestSideBySide checks that both columns have the same length and contain the lines of their text.
func TestSideBySide(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func() (lines []string) {
			for range r.IntN(30) {
				lines = append(lines, fmt.Sprintf("%s: %d", []string{"a", "b", "- c"}[r.IntN(3)], r.IntN(3)))
			}
			return lines
		}
		before, after := text(), text()
		left, right := sideBySide(before, after)
		if len(left) != len(right) {
			t.Fatalf("seed %d: %d lines beside %d", seed, len(left), len(right))
		}
		for i := range left {
			same1, same2 := left[i].Kind == same || left[i].Kind == fold, right[i].Kind == same || right[i].Kind == fold
			if same1 != same2 || same1 && fmt.Sprint(left[i]) != fmt.Sprint(right[i]) || left[i].Kind == pad && right[i].Kind == pad {
				t.Errorf("seed %d: %v is beside %v", seed, left[i], right[i])
			}
		}
		for name, side := range map[string]struct {
			lines []line
			text  []string
		}{"before": {left, before}, "after": {right, after}} {
			if got := textOf(side.lines, side.text); got != strings.Join(side.text, "\n") {
				t.Errorf("seed %d: %s is %q, want %q", seed, name, got, side.text)
			}
		}
	}
}

// textOf joins lines into a text again. The argument text has the original lines, from which it takes the lines that
// were folded.
func textOf(lines []line, text []string) string {
	var all []string
	for _, l := range lines {
		n := 0
		switch l.Kind {
		case pad:
		case fold:
			_, _ = fmt.Sscanf(l.Parts[0].Text, "%d lines", &n)
			all = append(all, text[len(all):len(all)+n]...)
		default:
			joined := ""
			for _, p := range l.Parts {
				joined += p.Text
			}
			all = append(all, joined)
		}
	}
	return strings.Join(all, "\n")
}

func TestWordsAreMarked(t *testing.T) {
	left, right := sideBySide([]string{"image: app:1", "x: 1"}, []string{"image: app:2", "y: 1"})
	want := "[{gone [{image: app: false} {1 true}]} {gone [{x: 1 false}]} {pad []}] [{new [{image: app: false} {2 true}]} {pad []} {new [{y: 1 false}]}]"
	if got := fmt.Sprint(left, " ", right); got != strings.Replace(want, "] [", "]   [", 1) && got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestHundredsOfFindings(t *testing.T) {
	p := Page{Title: "many"}
	for i := range 1000 {
		p.Findings = append(p.Findings, Finding{
			Law: fmt.Sprint("law", i%60), Webhooks: []string{fmt.Sprint("hook", i)}, Severity: Severity(i % 3), Title: "title",
			Steps: []Step{{Text: strings.Repeat("a: some line\n", 5000)}},
		})
	}
	got := render(t, p)
	if n := strings.Count(got, "<article "); n != mostFindings {
		t.Errorf("%d findings are shown, want %d", n, mostFindings)
	}
	if len(got) > 2*mostOfTexts {
		t.Errorf("the page has %d bytes", len(got))
	}
	for _, want := range []string{"This page shows the 300 worst of 1000 findings", "to keep this page small", "others"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(got, ">advice<") {
		t.Error("advice is shown where errors are left out")
	}
	if render(t, p) != got {
		t.Error("the same page is not the same bytes")
	}
}

func TestFromVerify(t *testing.T) {
	r := &idempotence.Report{
		Webhooks: []string{"a.example.com"}, Kinds: []string{"v1 Pod"},
		Laws: []idempotence.LawResult{{Law: idempotence.L1, Kind: "v1 Pod", Verdict: idempotence.Fails, Cases: 1}},
		Findings: []*idempotence.Violation{{
			Law: idempotence.L1, Kind: "v1 Pod", Verdict: idempotence.Fails, Summary: "grows",
			Case: idempotence.Case{Object: map[string]any{"kind": "Pod"}},
			Calls: []idempotence.Exchange{{
				Request: 1, Webhook: "a.example.com", ReviewVersion: "v1", Operation: "CREATE", Outcome: "allowed, with a patch",
				Object: json.RawMessage(`{"kind":"Pod"}`), Patch: json.RawMessage(`[{"op":"add","path":"/a~1b","value":1}]`), Offending: []int{0},
			}},
		}},
	}
	p := FromVerify(r)
	step := p.Findings[0].Steps[1]
	if p.Status != Failed || step.Diff == nil || step.Diff.After != "a/b: 1\nkind: Pod\n" || !step.Patch[0].Offending || p.Tables[0].Rows[0][2].To != p.Findings[0].ID {
		t.Errorf("%+v", p)
	}
	r.Findings[0].Verdict = idempotence.Advice
	if p := FromVerify(r); p.Status != Passed || p.Findings[0].Severity != Advice {
		t.Errorf("advice: %v %v", p.Status, p.Findings[0].Severity)
	}
	r.Incomplete = []idempotence.Reason{{Code: idempotence.ReasonInterrupted}}
	if p := FromVerify(r); p.Status != Undecided || !strings.Contains(p.Summary, "the run was interrupted") {
		t.Errorf("incomplete: %v %s", p.Status, p.Summary)
	}
}
