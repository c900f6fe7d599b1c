// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"strings"
	"testing"
)

// TestTextsAcrossWindows puts special bytes at every position of two windows: bytes that end a string, are invalid in
// it, or are marked by mistake. The cursor must agree with sigs.k8s.io/json on each document.
func TestTextsAcrossWindows(t *testing.T) {
	pieces := []string{`x`, `\"`, `\\`, `\\]`, `\u00e9`, `\u00g9`, `\x`, `é`, "\xff", "\x00", "\x1f", "\x7f", `"#`, `","#`, `\`, `"`}
	for before := range 2*windowBytes + 4 {
		for _, piece := range pieces {
			doc := `{"` + strings.Repeat("a", before) + piece + `":["` + strings.Repeat("#]", 20) + piece + `"]}`
			compare(t, []byte(doc))
			compare(t, []byte(doc+strings.Repeat(" ", windowBytes))) // far from the end of the document
		}
	}
}
