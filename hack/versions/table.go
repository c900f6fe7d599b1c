// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// declared has the reason for each test that may be skipped. The key is the version of Kubernetes and the name of the test.
// The version "" stands for all versions.
var declared = map[[2]string]string{}

// A table has the results of the suites on the releases.
type table struct {
	versions []string
	results  [][]*result // by suite and version
}

// add adds the result of the i-th suite on the last version.
func (t *table) add(i int, r *result) {
	for len(t.results) <= i {
		t.results = append(t.results, nil)
	}
	t.results[i] = append(t.results[i], r)
}

// text returns the table in Markdown.
func (t *table) text(suites []suite) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| Tests | %s |\n|---|%s\n", strings.Join(t.versions, " | "), strings.Repeat("---|", len(t.versions)))
	for i, row := range t.results {
		b.WriteString("| " + suites[i].title + " |")
		for _, r := range row {
			fmt.Fprintf(&b, " %d |", r.passed)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// failures returns the tests that failed, or were skipped without a declared reason.
func (t *table) failures() (all []string) {
	for _, row := range t.results {
		for i, r := range row {
			for _, name := range r.failed {
				all = append(all, t.versions[i]+" "+name)
			}
			for _, name := range r.skipped {
				if declared[[2]string{t.versions[i], name}] == "" && declared[[2]string{"", name}] == "" {
					all = append(all, t.versions[i]+" "+name)
				}
			}
		}
	}
	return all
}

// begin and end are the lines before and after the table on the page.
const begin, end = "<!-- begin: make versions -->\n", "<!-- end: make versions -->\n"

// writeInto replaces the table on a page.
func (t *table) writeInto(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s lacks the lines %q and %q", file, begin, end)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+t.text(suites)+"\n"+end+after), 0o644)
}
