// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
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

// TestPageSaysWhatHooksRead checks that the table of docs/gallery.md says of each hook what the tests of faults show.
func TestPageSaysWhatHooksRead(t *testing.T) {
	page, err := os.ReadFile("../../docs/gallery.md")
	if err != nil {
		t.Fatal(err)
	}
	most := map[string]string{} // of the hooks of a package, by its name
	order := []string{nothing, fromCache, orServer, server}
	for _, c := range faultCases() {
		name := packageOf(c.hook)
		if slices.Index(order, c.reads) >= slices.Index(order, most[name]) {
			most[name] = c.reads
		}
	}
	most["imagepolicywebhook"] = "an image service"
	for name, reads := range most {
		row := "| " + name + " | " + reads
		if !strings.Contains(string(page), row+" |") && !strings.Contains(string(page), row+"; ") { // what else it reads follows
			t.Errorf("docs/gallery.md has no row that begins with %q", row)
		}
	}
}
