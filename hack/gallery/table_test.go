// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A row of the table contains the results of one controller.
type row struct {
	inProcess, onServers string // equal/total
	harness              string // the verdict
	call                 string // median time of a call, under the load of TestLoad
	time, allocations    string // of a call, more than an empty hook needs; the time is in µs
	declared             []string
}

// rows maps the name of each controller that was compared to its row.
var rows = map[string]*row{}

// rowOf returns the row of the controller.
func rowOf(c *controller) *row {
	if rows[c.name] == nil {
		rows[c.name] = &row{}
	}
	return rows[c.name]
}

// printTable prints a line for each controller that was compared. Results with a declared difference do not count as
// equal. Lines of code include comments, but not tests.
func printTable(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "controller\trequests in process\ton API servers\tharness\tcall\tµs\tallocations\tlines\tlines of the original\tdeclared differences")
	for _, c := range slices.Concat(controllers(), withoutOriginals()) {
		if r := rows[c.name]; r != nil {
			ours := lines(filepath.Join("..", "..", "examples", "gallery", strings.ToLower(c.name)))
			original := "none"
			if c.register != nil {
				original = strconv.Itoa(lines(c.folder()))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", c.name, cmp.Or(r.inProcess, "-"), cmp.Or(r.onServers, "-"),
				cmp.Or(r.harness, "-"), cmp.Or(r.call, "-"), cmp.Or(r.time, "-"), cmp.Or(r.allocations, "-"), ours, original, strings.Join(r.declared, ", "))
		}
	}
	_ = w.Flush()
}

// folder returns the folder with the source of the original.
func (c *controller) folder() string {
	f := runtime.FuncForPC(reflect.ValueOf(c.register).Pointer())
	file, _ := f.FileLine(f.Entry())
	return filepath.Dir(file)
}

// lines counts the lines of the Go files in a folder, without tests.
func lines(folder string) (n int) {
	files, _ := filepath.Glob(filepath.Join(folder, "*.go")) // the pattern is valid
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, "_test.go") {
			n += bytes.Count(content, []byte("\n"))
		}
	}
	return n
}
