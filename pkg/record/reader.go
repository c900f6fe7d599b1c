// SPDX-License-Identifier: Apache-2.0

package record

import (
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/lines"
	"github.com/admitkit/admitkit/internal/textutil"
)

// maxLineBytes is the maximum length of a line. A longer one is skipped.
const maxLineBytes = 4 * maxCallBytes

// A Reader reads the calls of a file, which may be compressed with gzip. It reads in bounded memory, so a file can have
// any size. It is not safe for concurrent use.
type Reader struct {
	in     io.Reader
	lines  *lines.Reader
	report ReadReport
	err    error // returned by Next from now on
}

// A ReadReport counts the lines that a [Reader] has read so far.
type ReadReport struct {
	// Lines is the number of lines, and Calls the number of those that are calls.
	Lines, Calls int
	// Skipped is the number of lines that are neither calls nor empty. Examples are the first of them.
	Skipped  int
	Examples []SkippedLine
	// CutOff is the reason why the file could not be read to its end, or nil. A file is cut off
	// while it is being written, or if its writer was killed.
	CutOff error
}

// A SkippedLine is a line that is not a call.
type SkippedLine struct {
	Line   int
	Reason string
}

// maxExamples is the maximum number of examples in a report.
const maxExamples = 10

// A VersionError reports a line in a format that this package does not read.
type VersionError struct {
	Line   int
	Format string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("line %d has the format %q, and this version reads %q only: "+
		"use the version of admitkit that wrote the file", e.Line, textutil.Clip(e.Format, 100), Format)
}

// NewReader returns a reader of a file of a [Recorder].
func NewReader(in io.Reader) *Reader { return &Reader{in: in} }

// All yields the calls until the end of the file. It skips lines that are not calls. If the file is cut off, it yields the
// calls before the cut. [Reader.Report] has both. It stops at an error: a *[VersionError], or an error of the underlying
// reader. The caller may keep and change each Call.
func (r *Reader) All() iter.Seq2[*Call, error] {
	return func(yield func(*Call, error) bool) {
		for {
			call, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(call, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the next call, or io.EOF at the end of the file. Its other errors are those of [Reader.All]. After an
// error, it returns the same error again.
func (r *Reader) Next() (*Call, error) {
	for r.err == nil {
		if call := r.next(); call != nil {
			return call, nil
		}
	}
	return nil, r.err
}

// Report returns the counts of the lines that were read so far.
func (r *Reader) Report() ReadReport { return r.report }

// next reads a line. It returns nil if the line is not a call, and sets r.err at the end.
func (r *Reader) next() *Call {
	if r.lines == nil {
		text, err := lines.Decompress(r.in)
		if err != nil {
			r.end(err)
			return nil
		}
		r.lines = &lines.Reader{In: text, Limit: maxLineBytes}
	}
	line, err := r.lines.Next()
	if err != nil {
		r.end(err)
		return nil
	}
	r.report.Lines++
	switch {
	case line.TooLong:
		r.skip(fmt.Errorf("longer than %d MiB", maxLineBytes>>20))
		return nil
	case len(line.Text) == 0:
		return nil
	}
	call, err := parseLine(line.Text)
	var version *VersionError
	switch {
	case err == nil:
		r.report.Calls++
		call.Line = r.report.Lines
		return call
	case errors.As(err, &version):
		version.Line = r.report.Lines
		r.err = version
	case !line.Ended:
		r.report.CutOff = io.ErrUnexpectedEOF
	default:
		r.skip(err)
	}
	return nil
}

// end sets the error that Next returns. A decompression error becomes io.EOF, and Report has it in CutOff.
func (r *Reader) end(err error) {
	if !errors.Is(err, io.EOF) && !isDamage(err) {
		r.err = err
		return
	}
	if !errors.Is(err, io.EOF) {
		r.report.CutOff = err
	}
	r.err = io.EOF
}

// isDamage reports whether an error is one of a compressed file that is cut off or damaged.
func isDamage(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.As(err, &corrupt)
}

func (r *Reader) skip(reason error) {
	r.report.Skipped++
	if len(r.report.Examples) < maxExamples {
		r.report.Examples = append(r.report.Examples, SkippedLine{r.report.Lines, reason.Error()})
	}
}

var errNotCall = errors.New("not a recorded call")

// parseLine parses a line. The result shares no memory with it.
func parseLine(line []byte) (*Call, error) {
	var in struct {
		header
		Request json.RawMessage `json:"request"`
		Answer  json.RawMessage `json:"answer"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		var format struct{ Format string }
		if json.Unmarshal(line, &format) == nil && isOtherVersion(format.Format) {
			return nil, &VersionError{Format: format.Format}
		}
		return nil, err
	}
	switch {
	case isOtherVersion(in.Format):
		return nil, &VersionError{Format: in.Format}
	case in.Format != Format:
		return nil, errNotCall
	case len(in.Request) == 0 || in.Request[0] != '{':
		return nil, fmt.Errorf("%w: it has no request", errNotCall)
	case !(in.Seconds >= 0 && in.Seconds < 1e6):
		return nil, fmt.Errorf("%w: the duration is %v s", errNotCall, in.Seconds)
	}
	answer, err := packedAnswer(in.Answer)
	if err != nil {
		return nil, err
	}
	return &Call{
		Time: in.Time, Webhook: in.Webhook, Type: in.Type, Path: in.Path,
		Outcome: in.Outcome, Mode: in.Mode, Withheld: in.Withheld, Code: in.Code,
		Duration: time.Duration(math.Round(in.Seconds*1e6)) * time.Microsecond,
		Novel:    in.Novel, Key: in.Key, Request: in.Request, Answer: answer,
	}, nil
}

func isOtherVersion(format string) bool {
	return strings.HasPrefix(format, formatName) && format != Format
}

// packedAnswer returns an answer as the webhook sent it, with the patch in base64.
func packedAnswer(answer []byte) ([]byte, error) {
	if len(answer) == 0 {
		return nil, nil
	}
	c := jsonraw.NewCursor(answer)
	switch c.Kind() {
	case jsonraw.Null:
		return nil, nil
	case jsonraw.String:
		text, err := c.TextBytes()
		return append([]byte(nil), text...), err
	case jsonraw.Object:
	default:
		return nil, fmt.Errorf("%w: the answer is %s", errNotCall, c.Kind().Noun())
	}
	start, end, err := patchOf(c)
	if err != nil || end == 0 {
		return answer, err
	}
	out := append([]byte(nil), answer[:start]...)
	out = append(out, '"')
	out = base64.StdEncoding.AppendEncode(out, answer[start:end])
	out = append(out, '"')
	return append(out, answer[end:]...), nil
}

// patchOf returns the start and end of the last patch in the response, if that is an array. Otherwise it returns zeros.
func patchOf(c *jsonraw.Cursor) (start, end int, err error) {
	err = c.Members(func(name string) error {
		if name != "response" || c.Kind() != jsonraw.Object {
			return c.Skip()
		}
		return c.Members(func(name string) error {
			isPatch := name == "patch" && c.Kind() == jsonraw.Array
			at := c.Offset()
			if err := c.Skip(); err != nil {
				return err
			}
			if isPatch {
				start, end = at, c.Offset()
			}
			return nil
		})
	})
	return start, end, err
}
