// SPDX-License-Identifier: Apache-2.0

// Package traffic reads the recordings that a user passes with --traffic.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/lines"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/record"
)

// A Call is a recorded call with its decoded request.
type Call struct {
	*record.Call
	File   string
	Review *admissionv1.AdmissionRequest
}

// Where returns the file and the line of the call.
func (c *Call) Where() string { return fmt.Sprintf("%s:%d", textutil.VisibleLine(c.File), c.Line) }

// A File says how much of a recording was readable.
type File struct {
	Name string `json:"file"`
	// Lines is the number of all lines, and Calls the number of readable calls.
	Lines int `json:"lines"`
	Calls int `json:"calls"`
	// Skipped is the number of lines that are not empty and not readable calls. Examples are the first of these.
	Skipped  int       `json:"skipped"`
	Examples []Skipped `json:"examples,omitempty"`
	// Ended is the reason why the file was not read to its end, or "".
	Ended string `json:"ended,omitempty"`
}

// A Skipped is a line that is not a readable call.
type Skipped struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// maxExamples is the maximum number of examples of skipped lines of a file.
const maxExamples = 5

// Read reads recordings in bounded memory, and calls use for each call, in the order of the paths. It reads the recordings
// in a folder in the order of their names. It reports skipped lines and damaged files to note. It returns an error if a file
// does not exist or cannot be read, if no call is readable, or if use returns an error.
func Read(ctx context.Context, paths []string, s *screen.Screen, note func(format string, args ...any), use func(*Call) error) ([]File, error) {
	names, size, err := list(paths)
	if err != nil {
		return nil, err
	}
	progress := s.Progress()
	defer progress.Done()
	var files []File
	var read int64
	calls := 0
	for _, name := range names {
		r := &reader{file: File{Name: name}, use: use, progress: func(n int) {
			read += int64(n)
			progress.Part(read, size, "reading %s, %s", name, textutil.Count(calls, "call"))
		}, calls: &calls}
		if err := r.read(ctx); err != nil {
			return nil, err
		}
		files = append(files, r.file)
	}
	progress.Done()
	for i := range files {
		files[i].report(note)
	}
	if calls == 0 {
		return nil, unreadable(files)
	}
	return files, nil
}

// list returns the recordings at the paths, and their total size in bytes.
func list(paths []string) (names []string, size int64, err error) {
	names, err = lines.Files(paths, ".jsonl", ".jsonl.gz")
	var empty *lines.EmptyError
	switch {
	case errors.As(err, &empty):
		return nil, 0, problem.New("--traffic: %w", err).Hint("admitkit record --to URL --output %s", textutil.ShellQuote(empty.Folder))
	case err != nil:
		return nil, 0, problem.New("--traffic: %w", err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, 0, problem.New("--traffic: %w", err)
		}
		size += info.Size()
	}
	return names, size, nil
}

// A reader reads one file.
type reader struct {
	file     File
	use      func(*Call) error
	progress func(n int)
	calls    *int // number of readable calls in all files
}

func (r *reader) read(ctx context.Context) error {
	f, err := os.Open(r.file.Name)
	if err != nil {
		return problem.New("--traffic: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	in := record.NewReader(reporting{ctx, f, r.progress})
	for call, err := range in.All() {
		var version *record.VersionError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &version):
			r.file.Ended = version.Error()
		case err != nil:
			return problem.New("--traffic %s: %w", r.file.Name, err)
		default:
			if err := r.call(call); err != nil {
				return err
			}
		}
	}
	report := in.Report()
	r.file.Lines = report.Lines
	r.file.Skipped += report.Skipped
	for _, e := range report.Examples {
		r.file.Examples = append(r.file.Examples, Skipped(e))
	}
	slices.SortStableFunc(r.file.Examples, func(a, b Skipped) int { return a.Line - b.Line })
	r.file.Examples = r.file.Examples[:min(len(r.file.Examples), maxExamples)]
	if report.CutOff != nil {
		r.file.Ended = fmt.Sprintf("it is cut off or damaged after line %d: %v", report.Lines, report.CutOff)
	}
	return nil
}

// call decodes the request of a call, and passes the call to use. A call without a valid request is skipped.
func (r *reader) call(recorded *record.Call) error {
	review, err := decode(recorded.Request)
	if err != nil {
		r.file.Skipped++
		if len(r.file.Examples) < maxExamples {
			r.file.Examples = append(r.file.Examples, Skipped{recorded.Line, err.Error()})
		}
		return nil
	}
	r.file.Calls++
	*r.calls++
	return r.use(&Call{Call: recorded, File: r.file.Name, Review: review})
}

// decode decodes the request of an AdmissionReview. Requests of v1beta1 have the same fields.
func decode(document []byte) (*admissionv1.AdmissionRequest, error) {
	var review struct {
		Request *admissionv1.AdmissionRequest `json:"request"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &review); err != nil {
		return nil, fmt.Errorf("its AdmissionReview is invalid: %w", err)
	}
	q := review.Request
	switch {
	case q == nil:
		return nil, errors.New("its AdmissionReview has no request")
	case q.Kind.Kind == "" || q.Kind.Version == "" || q.Resource.Resource == "":
		return nil, errors.New("its request has no kind or no resource")
	}
	switch q.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Connect, admissionv1.Delete:
	default:
		return nil, fmt.Errorf("its request has the operation %q", textutil.Clip(string(q.Operation), 20))
	}
	for _, raw := range [][]byte{q.Object.Raw, q.OldObject.Raw} {
		if len(raw) > 0 && raw[0] != '{' {
			return nil, errors.New("an object in its request is not a JSON object")
		}
	}
	return q, nil
}

// report reports skipped lines and damage to note.
func (f *File) report(note func(format string, args ...any)) {
	name := objects.Names(f.Name)
	if f.Skipped > 0 {
		var reasons []string
		for _, e := range f.Examples {
			reasons = append(reasons, fmt.Sprintf("line %d: %s", e.Line, textutil.VisibleLine(e.Reason)))
		}
		if more := f.Skipped - len(f.Examples); more > 0 {
			reasons = append(reasons, fmt.Sprintf("and %d more", more))
		}
		note("%s: skipped %s of %d: %s", name, textutil.Count(f.Skipped, "line"), f.Lines, strings.Join(reasons, "; "))
	}
	if f.Ended != "" {
		note("%s: read in part: %s", name, textutil.VisibleLine(f.Ended))
	}
	if f.Lines == 0 && f.Ended == "" {
		note("%s: the file is empty", name)
	}
}

// unreadable returns the error for recordings without a readable call. The notes of Read have the reasons.
func unreadable(files []File) error {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return problem.New("--traffic: no recorded call is readable in %s", objects.Names(names...)).
		Hint("admitkit record --to URL  # writes recordings; docs/recording.md shows their format")
}

// reporting is a reader that reports how much was read, and ends with its context.
type reporting struct {
	ctx    context.Context
	from   io.Reader
	report func(n int)
}

func (r reporting) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.from.Read(p)
	r.report(n)
	return n, err
}

// Path returns the path of the URL at which the API server calls a webhook.
func Path(c admissionregistrationv1.WebhookClientConfig) string {
	switch {
	case c.URL != nil:
		return PathOfURL(*c.URL)
	case c.Service != nil && c.Service.Path != nil:
		return path.Join("/", *c.Service.Path)
	}
	return "/"
}

// PathOfURL returns the path of a URL. The path begins with a slash. It returns "" if text is not a URL.
func PathOfURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return path.Join("/", u.Path)
}
