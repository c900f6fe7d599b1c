// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "write the checks into docs/doctor.md")

// TestTheGuideListsTheChecks compares the tables of docs/doctor.md with Checks.
func TestTheGuideListsTheChecks(t *testing.T) {
	const file, begin, end = "../../docs/doctor.md", "<!-- checks: go test ./internal/doctor -run Guide -update -->\n", "<!-- end of checks -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	listed, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks the markers for the checks", file)
	}
	want := "\n" + guide() + "\n"
	if listed == want {
		return
	}
	if !*rewrite {
		t.Fatalf("the checks of %s are outdated: run this test with -update", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// guide returns the checks as tables in Markdown.
func guide() string {
	var text strings.Builder
	for _, group := range []struct {
		heading string
		checks  []Check
	}{
		{"Calls, certificates and CAs", append(fromLint(isBundleRule), unreachable...)},
		{"Webhooks that fail when something else fails", append(fromLint(isOtherRule), dangerous...)},
		{"Webhooks that fail or are slow", failing},
	} {
		slices.SortStableFunc(group.checks, func(a, b Check) int { return compare(Finding{Severity: a.Severity}, Finding{Severity: b.Severity}) })
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "### %s\n\n| Check | Severity | Problem |\n|---|---|---|\n", group.heading)
		for _, c := range group.checks {
			fmt.Fprintf(&text, "| `%s` | %s | %s |\n", c.ID, c.Severity, c.Title)
		}
	}
	return text.String()
}
