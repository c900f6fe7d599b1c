// SPDX-License-Identifier: Apache-2.0

// Package docs tests the Markdown files of the repository. The targets of links and make commands must exist,
// docs/README.md must link every page, and the output on a page must be the output of its command.
package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`^#{1,6} +(.+)$`)
	headLink   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	makeInText = regexp.MustCompile("`make ([a-z0-9-]+)")
	makeInCode = regexp.MustCompile(`^\s*(?:\$ )?make ([a-z0-9-]+)`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

func TestLinksResolve(t *testing.T) {
	for path, text := range pages(t) {
		for _, target := range links(text) {
			file, anchor, _ := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			info, err := os.Stat(to)
			if err != nil {
				t.Errorf("%s: link %s: %v", path, target, err)
				continue
			}
			if anchor == "" || info.IsDir() {
				continue
			}
			text, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(text))[anchor] {
				t.Errorf("%s: link %s: %s has no such heading", path, target, file)
			}
		}
	}
}

// TestIndexLinksEveryPage requires a link in docs/README.md to each page, exported API and
// monitoring file below docs.
func TestIndexLinksEveryPage(t *testing.T) {
	docs := filepath.Join(root, "docs")
	index := filepath.Join(docs, "README.md")
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{index: true}
	for _, target := range links(string(text)) {
		file, _, _ := strings.Cut(target, "#")
		linked[filepath.Join(docs, file)] = true
	}
	err = filepath.WalkDir(docs, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".go" {
			return err
		}
		if !linked[path] {
			t.Errorf("docs/README.md has no link to %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// packageName matches the path of a package folder in docs/architecture.md.
var packageName = regexp.MustCompile("`((?:pkg|internal|test|hack|examples|cmd)/[a-z0-9/]+)`")

// TestArchitectureNamesPackages requires that docs/architecture.md names each public package, and no
// folder that does not exist.
func TestArchitectureNamesPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, match := range packageName.FindAllStringSubmatch(string(text), -1) {
		named[match[1]] = true
		if info, err := os.Stat(filepath.Join(root, match[1])); err != nil || !info.IsDir() {
			t.Errorf("docs/architecture.md names %s, which does not exist", match[1])
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "api", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := "pkg/" + strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "-", "/")
		if !named[name] {
			t.Errorf("docs/architecture.md does not name %s", name)
		}
	}
}

func TestMakeTargetsExist(t *testing.T) {
	own := targetsOf(t, filepath.Join(root, "Makefile"))
	scaffolded := targetsOf(t, filepath.Join(root, "internal", "cli", "scaffold", "templates", "Makefile.tmpl"))
	for path, text := range pages(t) {
		targets := own
		switch path {
		case filepath.Join(root, "docs", "projects.md"), filepath.Join(root, "docs", "manifests.md"), filepath.Join(root, "docs", "reading.md"):
			targets = scaffolded // these pages are about a generated project
		case filepath.Join(root, "docs", tutorial), filepath.Join(root, "README.md"): // these pages use both Makefiles
			targets = maps.Clone(own)
			maps.Copy(targets, scaffolded)
		}
		if strings.HasPrefix(path, filepath.Join(root, "examples")) {
			continue // an example may have its own Makefile
		}
		for _, target := range makeCalls(text) {
			if !targets[target] {
				t.Errorf("%s: the Makefile has no target %s", path, target)
			}
		}
	}
}

func targetsOf(t *testing.T, makefile string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(makefile)
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, match := range makeTarget.FindAllStringSubmatch(string(text), -1) {
		targets[match[1]] = true
	}
	return targets
}

func TestMarkdownIsReadAsGitHubDoes(t *testing.T) {
	const page = "# The `page`, one\n" +
		"See [two](other.md#a-b) and [web](https://example.com) and [same](#the-page-one).\n" +
		"```sh\n# not a heading, [not](a-link.md)\n$ make one\nmake two A=b\n```\n" +
		"Run `make three`;\nmake sure that it works.\n" +
		"## A [linked](x.md) heading\n## Again\n## Again\n"
	got := links(page)
	want := []string{"other.md#a-b", "#the-page-one", "x.md"}
	if !slices.Equal(got, want) {
		t.Errorf("links: got %q, want %q", got, want)
	}
	if got, want := makeCalls(page), []string{"three", "one", "two"}; !slices.Equal(got, want) {
		t.Errorf("make targets: got %q, want %q", got, want)
	}
	found := anchors(page)
	for _, anchor := range []string{"the-page-one", "a-linked-heading", "again", "again-1"} {
		if !found[anchor] {
			t.Errorf("anchors: no %s in %v", anchor, found)
		}
	}
	if len(found) != 4 {
		t.Errorf("anchors: got %v, want 4", found)
	}
}

// pages returns the text of each Markdown file of the project by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// split returns the lines outside and inside of fenced blocks.
func split(text string) (prose, code []string) {
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced:
			code = append(code, line)
		default:
			prose = append(prose, line)
		}
	}
	return prose, code
}

// makeCalls returns the make targets in commands of the text.
func makeCalls(text string) []string {
	var targets []string
	find := func(lines []string, call *regexp.Regexp) {
		for _, line := range lines {
			for _, match := range call.FindAllStringSubmatch(line, -1) {
				targets = append(targets, match[1])
			}
		}
	}
	prose, code := split(text)
	find(prose, makeInText)
	find(code, makeInCode)
	return targets
}

// links returns the targets of links to files of the repository.
func links(text string) []string {
	var targets []string
	prose, _ := split(text)
	for _, line := range prose {
		for _, match := range link.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(match[1], ":") {
				targets = append(targets, match[1])
			}
		}
	}
	return targets
}

// anchors returns the anchors that GitHub generates for the headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	prose, _ := split(text)
	for _, line := range prose {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		title := strings.ToLower(headLink.ReplaceAllString(match[1], "$1"))
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return r
			}
			return -1
		}, title)
		unique := name
		for n := 1; all[unique]; n++ {
			unique = name + "-" + strconv.Itoa(n)
		}
		all[unique] = true
	}
	return all
}
