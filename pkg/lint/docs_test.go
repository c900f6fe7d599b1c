// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "write the rules into docs/lint-rules.md")

// TestTheGuideListsTheRules compares the tables of docs/lint-rules.md with Rules.
func TestTheGuideListsTheRules(t *testing.T) {
	const file, begin, end = "../../docs/lint-rules.md", "<!-- rules: go test ./pkg/lint -run Guide -update -->\n", "<!-- end of rules -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	listed, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks the markers for the rules", file)
	}
	want := "\n" + guide() + "\n"
	if listed == want {
		return
	}
	if !*rewrite {
		t.Fatalf("the rules of %s are outdated: run this test with -update", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// guide returns the rules as tables in Markdown. The tables omit why a rule exists, which "admitkit lint --explain"
// prints.
func guide() string {
	headings := map[byte]string{
		'1': "Configurations that the API server rejects or changes", '2': "Lock-outs", '3': "Unexpected matching",
		'4': "Time and order", '5': "Certificates", '9': "Suppressions",
	}
	var text strings.Builder
	var last byte
	for _, r := range Rules() {
		if r.ID[2] != last {
			if last != 0 {
				text.WriteString("\n")
			}
			last = r.ID[2]
			fmt.Fprintf(&text, "### %s\n\n| Rule | Severity | Problem | Fix |\n|---|---|---|---|\n", headings[last])
		}
		cell := strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace
		fmt.Fprintf(&text, "| [%s](%s) | %s | %s | %s |\n", r.ID, r.Link, r.Severity, cell(r.Title), cell(r.Fix))
	}
	return text.String()
}
