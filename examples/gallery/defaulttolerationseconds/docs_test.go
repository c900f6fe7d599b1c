// SPDX-License-Identifier: Apache-2.0

package defaulttolerationseconds

import (
	"os"
	"strings"
	"testing"
)

// TestPageShowsTheHook checks that docs/gallery.md shows this package as it is.
func TestPageShowsTheHook(t *testing.T) {
	source, err := os.ReadFile("defaulttolerationseconds.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/gallery.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "\npackage ")
	if !strings.Contains(string(page), "```go\npackage "+code+"```\n") {
		t.Error("docs/gallery.md shows another hook: copy it from defaulttolerationseconds.go")
	}
}
