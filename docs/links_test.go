// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestLinksLeadSomewhere(t *testing.T) {
	for name, text := range pages(t) {
		for _, problem := range deadLinks(name, text) {
			t.Error(problem)
		}
	}
}

func TestIndexNamesEveryPage(t *testing.T) {
	all := pages(t)
	named := linksOf(all["README.md"])
	for name := range all {
		if name != "README.md" && !slices.Contains(named, name) {
			t.Errorf("README.md has no link to %s", name)
		}
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	const page = "# One page\n## The `Two`: second\n## The two second\n" +
		"[a](README.md) [b](#one-page) [c](#the-two-second) [c](#the-two-second-1) [d](https://example.com/x)\n" +
		"```md\n# No heading\n[no link](nowhere.md)\n```\n" +
		"[e](nowhere.md) [f](#no-heading) [g](README.md#nowhere)\n"
	got := fmt.Sprint(deadLinks("page.md", page))
	want := "[page.md: nowhere.md leads nowhere page.md: #no-heading leads nowhere page.md: README.md#nowhere leads nowhere]"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

var (
	fence      = regexp.MustCompile("(?ms)^```.*?^```$")
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings   = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
)

// linksOf returns the targets of the links that stay in the repository.
func linksOf(text string) []string {
	var targets []string
	for _, match := range inlineLink.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		if !strings.Contains(match[1], "://") {
			targets = append(targets, match[1])
		}
	}
	return targets
}

func deadLinks(name, text string) []string {
	var dead []string
	for _, target := range linksOf(text) {
		file, anchor, _ := strings.Cut(target, "#")
		there := text
		if file != "" {
			path := filepath.Join(filepath.Dir(name), file)
			content, err := os.ReadFile(path)
			if info, statErr := os.Stat(path); err != nil && (statErr != nil || !info.IsDir()) {
				dead = append(dead, fmt.Sprintf("%s: %s leads nowhere", name, target))
				continue
			}
			there = string(content)
		}
		if anchor != "" && !slices.Contains(anchorsOf(there), anchor) {
			dead = append(dead, fmt.Sprintf("%s: %s leads nowhere", name, target))
		}
	}
	return dead
}

// anchorsOf returns the names that GitHub gives to the headings: lower case, spaces as dashes,
// other signs left out, and a number on what comes again.
func anchorsOf(text string) []string {
	var anchors []string
	seen := map[string]int{}
	for _, match := range headings.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, match[1])
		if n := seen[anchor]; n > 0 {
			anchors = append(anchors, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			anchors = append(anchors, anchor)
		}
		seen[anchor]++
	}
	return anchors
}
