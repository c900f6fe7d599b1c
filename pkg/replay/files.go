// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/record"
)

// A File says how much of a file could be read.
type File struct {
	Name string `json:"name"`
	// Calls is the number of calls in the file, and Skipped the number of lines that are not calls.
	Calls   int `json:"calls"`
	Skipped int `json:"skipped,omitempty"`
	// Problems describes the first skipped lines, and why the rest of the file could not be read.
	Problems []string `json:"problems,omitempty"`
}

// An UnreadableError reports that the files have no call that could be read.
type UnreadableError struct{ Files []File }

func (e *UnreadableError) Error() string {
	var text strings.Builder
	text.WriteString("replay: no call could be read")
	for _, f := range e.Files {
		fmt.Fprintf(&text, "\n%s: %s", f.Name, textutil.Count(f.Calls, "call"))
		for _, problem := range f.Problems {
			text.WriteString("; " + problem)
		}
	}
	return text.String()
}

// filesOf returns the named files. For a folder, it returns the files in it with the suffix .gz, sorted by name and so by
// age.
func filesOf(names []string) (files []string, err error) {
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("replay: there is no file %s", name)
		case err != nil:
			return nil, fmt.Errorf("replay: cannot read the recording: %w", err)
		case !info.IsDir():
			files = append(files, name)
			continue
		}
		inside, err := filepath.Glob(filepath.Join(name, "*.gz"))
		if err != nil || len(inside) == 0 {
			return nil, fmt.Errorf("replay: the folder %s has no recordings: want files *.gz", name)
		}
		slices.Sort(inside)
		files = append(files, inside...)
	}
	return files, nil
}

// read calls use for each call of a file that the options select, and adds the file to the report. It reads a damaged file
// as far as possible. It fails if the file cannot be opened, or if use fails.
func (r *runner) read(name string, use func(place, *record.Call) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("replay: cannot read the recording: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	reader, out := record.NewReader(f), File{Name: name}
	for call, err := range reader.All() {
		if err != nil {
			out.Problems = append(out.Problems, err.Error())
			break
		}
		out.Calls++
		if len(r.Webhooks) > 0 && !slices.Contains(r.Webhooks, call.Webhook) && !slices.Contains(r.Webhooks, call.Path) {
			r.report.Excluded++
			continue
		}
		if err := use(place{name, call.Line}, call); err != nil {
			return err
		}
	}
	report := reader.Report()
	out.Skipped = report.Skipped
	for _, line := range report.Examples {
		out.Problems = append(out.Problems, fmt.Sprintf("line %d was skipped: %s", line.Line, line.Reason))
	}
	if report.CutOff != nil {
		out.Problems = append(out.Problems, "the file is cut off: "+report.CutOff.Error())
	}
	r.report.Files = append(r.report.Files, out)
	return nil
}

// Calls yields the calls of files, or of the files in folders, in their order. It skips lines that are not calls, and reads
// damaged files as far as possible. It ends after the first error that it yields.
func Calls(names ...string) iter.Seq2[*record.Call, error] {
	return func(yield func(*record.Call, error) bool) {
		files, err := filesOf(names)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, name := range files {
			if !callsOf(name, yield) {
				return
			}
		}
	}
}

// callsOf yields the calls of a file. It returns false after an error, or if yield returned false.
func callsOf(name string, yield func(*record.Call, error) bool) bool {
	f, err := os.Open(name)
	if err != nil {
		return yield(nil, fmt.Errorf("replay: cannot read the recording: %w", err)) && false
	}
	defer func() { _ = f.Close() }() // nothing was written
	for call, err := range record.NewReader(f).All() {
		if err != nil {
			return yield(nil, fmt.Errorf("replay: %s: %w", name, err)) && false
		}
		if !yield(call, nil) {
			return false
		}
	}
	return true
}
