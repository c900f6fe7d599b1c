// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// TestPageShowsTheHooks checks that docs/gallery.md shows these hooks as they are.
func TestPageShowsTheHooks(t *testing.T) {
	page, err := os.ReadFile("../../docs/gallery.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"defaulttolerationseconds", "denyserviceexternalips", "persistentvolumeclaimresize"} {
		source, err := os.ReadFile(name + "/" + name + ".go")
		if err != nil {
			t.Fatal(err)
		}
		_, code, _ := strings.Cut(string(source), "\npackage "+name+"\n")
		if code == "" || !strings.Contains(string(page), "```go\npackage "+name+"\n"+code+"```") {
			t.Errorf("docs/gallery.md does not show %s as it is: copy the file from the package clause to the end", name)
		}
	}
}
