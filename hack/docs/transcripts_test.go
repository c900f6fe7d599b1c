// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// transcript matches a mark and the block below it, a command with its output:
//
//	<!-- transcript cmd/admitkit/testdata/lint.txtar want -->
//
// The txtar script must run the command. The second name in the mark, here want, is the file in the script that must
// have the output. A line "..." stands for any number of lines.
var transcript = regexp.MustCompile("(?m)^<!-- transcript (\\S+) (\\S+) -->\n```(?:console|text)\n\\$ (.*)\n((?:.*\n)*?)```$")

// excerpt matches a mark and a block with lines that the script must have in this order:
//
//	<!-- transcript cmd/admitkit/testdata/verify.txtar -->
var excerpt = regexp.MustCompile("(?m)^<!-- transcript (\\S+) -->\n```(?:console|text)\n((?:.*\n)*?)```$")

func TestTranscriptsMatchTheScripts(t *testing.T) {
	found := 0
	for name, text := range pages(t) {
		blocks, excerpts := transcript.FindAllStringSubmatch(text, -1), excerpt.FindAllStringSubmatch(text, -1)
		if got, known := strings.Count(text, "\n<!-- transcript "), len(blocks)+len(excerpts); got != known {
			t.Errorf("%s: %d of %d transcript marks have no block below them", name, got-known, got)
		}
		for _, block := range blocks {
			found++
			if err := checkTranscript(block[1], block[2], block[3], block[4]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, block := range excerpts {
			if err := checkExcerpt(block[1], block[2]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if found < 3 {
		t.Errorf("found only %d transcripts", found)
	}
}

func checkTranscript(script, file, command, output string) error {
	archive, err := txtar.ParseFile(filepath.Join(root, script))
	if err != nil {
		return err
	}
	lines := strings.Split(string(archive.Comment), "\n")
	for _, f := range archive.Files {
		if path.Ext(f.Name) == ".sh" {
			lines = append(lines, strings.Split(string(f.Data), "\n")...)
		}
	}
	if !slices.ContainsFunc(lines, func(line string) bool {
		line, _, _ = strings.Cut(line, " || ") // of a shell script
		return strings.HasSuffix(" "+line, " "+command)
	}) {
		return fmt.Errorf("%s does not run %s", script, command)
	}
	for _, f := range archive.Files {
		if f.Name == file {
			if !abridges(output, string(f.Data)) {
				return fmt.Errorf("%s: the page differs from the output of %s, which is in the file %s", script, command, file)
			}
			return nil
		}
	}
	return fmt.Errorf("%s has no file %s", script, file)
}

// varying has patterns for the parts of an output that differ between runs, and placeholders for them.
var varying = []struct {
	pattern *regexp.Regexp
	mask    string
}{
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `), "TT:TT:TT "},
	{regexp.MustCompile(`\d+\.\d ms`), "N ms"},
}

func masked(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.mask)
	}
	return text
}

func checkExcerpt(script, lines string) error {
	text, err := os.ReadFile(filepath.Join(root, script))
	if err != nil {
		return err
	}
	rest := masked(string(text))
	for part := range strings.SplitSeq(masked(lines), "...\n") {
		_, after, found := strings.Cut(rest, "\n"+part)
		if !found {
			return fmt.Errorf("%s lacks these lines, or has them in another order:\n%s", script, part)
		}
		rest = "\n" + after
	}
	return nil
}

// abridges reports whether short equals text if each line "..." stands for any number of lines.
func abridges(short, text string) bool {
	for i, part := range strings.Split("\n"+short, "\n...\n") {
		if i > 0 {
			part = "\n" + part
		}
		at := strings.Index("\n"+text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[max(0, at+len(part)-2):] // the next part begins at the end of this line
	}
	return strings.HasSuffix(short, "...\n") || strings.TrimSpace(text) == ""
}

func TestAbridgesMatchesEllipses(t *testing.T) {
	const text = "a\nb\nc\nd\n"
	rows := []struct {
		short string
		want  bool
	}{
		{text, true},
		{"a\n...\nd\n", true},
		{"a\n...\nb\nc\nd\n", true},
		{"a\nb\n...\n", true},
		{"...\nc\nd\n", true},
		{"a\nb\n", false},
		{"b\nc\nd\n", false},
		{"a\n...\nx\n", false},
		{"a\n...\nc\n", false},
		{"a\n...\nb\nd\n", false},
	}
	for _, row := range rows {
		if got := abridges(row.short, text); got != row.want {
			t.Errorf("abridges(%q) is %v, want %v", row.short, got, row.want)
		}
	}
}
