// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/lines"
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

// filesOf returns the files with these names, and the recordings in folders with these names, by name and so by age.
func filesOf(names []string) ([]string, error) {
	files, err := lines.Files(names, ".jsonl", ".jsonl.gz")
	if err != nil {
		return nil, fmt.Errorf("replay: cannot read the recordings: %w", err)
	}
	return files, nil
}

// read calls use for the calls of a file that the options select, and adds the file to the report. A file that is damaged
// is read as far as possible. Errors are those of use.
func (r *runner) read(ctx context.Context, name string, use func(place, *record.Call) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("replay: cannot read the recording: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	reader, out := record.NewReader(interruptible{ctx, f}), File{Name: name}
	for call, err := range reader.All() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
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
	if more := report.Skipped - len(report.Examples); more > 0 {
		out.Problems = append(out.Problems, textutil.CountAs(more, "more line was", "more lines were")+" skipped")
	}
	if report.CutOff != nil {
		out.Problems = append(out.Problems, "the file is cut off: "+report.CutOff.Error())
	}
	r.report.Files = append(r.report.Files, out)
	return nil
}

// An interruptible is a reader that ends with its context.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}
