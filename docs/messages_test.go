// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	textBlock = regexp.MustCompile("(?ms)^```text\n(.*?)^```$")
	logLine   = regexp.MustCompile(`(?m)^(?:\d\d:\d\d:\d\d )?(?:INFO|ERROR) (.+?)(?: \w+=.*)?$`)
	alertName = regexp.MustCompile("`(Admitkit[A-Z][A-Za-z]+)`")
)

// TestQuotedLogLinesExist requires that a package logs each message that a page quotes.
func TestQuotedLogLinesExist(t *testing.T) {
	code := sources(t)
	found := 0
	for name, text := range pages(t) {
		for _, message := range logLines(text) {
			found++
			if !strings.Contains(code, `"`+message+`"`) {
				t.Errorf("%s: no package logs %q", name, message)
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d log lines only", found)
	}
}

// logLines returns the log messages in the text blocks of a page. It removes the suffix of rate-limited messages.
func logLines(page string) []string {
	var all []string
	for _, block := range textBlock.FindAllStringSubmatch(page, -1) {
		for _, line := range logLine.FindAllStringSubmatch(block[1], -1) {
			message, _, _ := strings.Cut(line[1], "; further errors of this kind")
			all = append(all, message)
		}
	}
	return all
}

func TestLogLinesAreFound(t *testing.T) {
	got := logLines("# Page\n```text\n11:27:38 INFO CA phase=stable trusted=1\nERROR two words; further errors of this kind within a minute err=\"no\"\nINFO done\nINFOs\n```\n```go\nINFO no\n```\n")
	if want := []string{"CA", "two words", "done"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAlertsExist(t *testing.T) {
	rules, err := os.ReadFile("monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, text := range pages(t) {
		for _, match := range alertName.FindAllStringSubmatch(text, -1) {
			found++
			if !strings.Contains(string(rules), "alert: "+match[1]+"\n") {
				t.Errorf("%s: there is no alert %s", name, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no page names an alert")
	}
}

// sources returns the Go code of all packages in pkg, without tests.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../pkg", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
