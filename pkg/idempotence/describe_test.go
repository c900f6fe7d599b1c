// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var violationCall = regexp.MustCompile(`violation\(c, "([^"]+)"`)

// What is said of a webhook that fails is not what is said of a law that is broken otherwise.
func TestFailuresHaveTheirOwnCause(t *testing.T) {
	for _, law := range []Law{L2, L4a, L5, L6, L9} {
		if cause := causeOf(law, "fails"); cause == causeOf(law, "another way") && law != L2 || cause == "" {
			t.Errorf("%s fails: %q", law, cause)
		}
		if fix := fixFor(law, "fails"); fix == "" {
			t.Errorf("%s fails: no fix", law)
		}
	}
}

// Whatever way a law is broken in, there is a cause and a fix, in one or two whole sentences.
func TestEveryWayIsExplained(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range violationCall.FindAllSubmatch(source, -1) {
			ways[string(match[1])] = true
		}
	}
	if len(ways) < 10 {
		t.Fatalf("found only %v", ways)
	}
	for way := range ways {
		for _, law := range Laws {
			cause, fix := causeOf(law, way), fixFor(law, way)
			if cause != "" && !strings.HasSuffix(cause, ".") || !strings.HasSuffix(fix, ".") && !strings.HasSuffix(fix, ")") || fix == "" {
				t.Errorf("%s %s: cause %q, fix %q", law, way, cause, fix)
			}
		}
	}
}
