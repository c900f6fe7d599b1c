// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVerifyGuideIsReal holds what the guide shows against the transcripts: each line is there, in this order.
func TestVerifyGuideIsReal(t *testing.T) {
	guide, err := os.ReadFile("../../docs/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- transcript ([a-z_]+\\.txtar) -->\n```text\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) < 3 {
		t.Errorf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		transcript, err := os.ReadFile(filepath.Join("testdata", block[1]))
		if err != nil {
			t.Fatal(err)
		}
		rest := string(transcript)
		for part := range strings.SplitSeq(block[2], "...\n") {
			_, after, found := strings.Cut(rest, "\n"+part)
			if !found {
				t.Errorf("%s does not have, or not any more, and not after what is above it:\n%s", block[1], part)
			}
			rest = "\n" + after
		}
	}
}
