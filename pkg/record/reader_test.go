// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const goodLine = `{"format":"admitkit-record/1","time":"2026-03-14T15:09:26.535Z","webhook":"pods.example.com","type":"mutating","path":"/mutate","outcome":"mutated",` +
	`"code":200,"durationSeconds":0.00125,"novel":true,"key":"0123abcd","request":{"request":{"uid":"u"}},"answer":{"response":{"uid":"u","allowed":true,"patch":[{"op":"remove","path":"/a"}]}}}`

func compressed(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(text)) // memory never fails
	_ = z.Close()
	return out.Bytes()
}

// readAll returns the calls, the report and the error of a file.
func readAll(in io.Reader) (calls []*Call, report ReadReport, err error) {
	r := NewReader(in)
	for call, e := range r.All() {
		if e != nil {
			err = e
			break
		}
		calls = append(calls, call)
	}
	return calls, r.Report(), err
}

func TestReadLine(t *testing.T) {
	calls, _, err := readAll(strings.NewReader(goodLine + "\n"))
	want := &Call{Line: 1, Time: time.Date(2026, 3, 14, 15, 9, 26, 535e6, time.UTC), Webhook: "pods.example.com", Type: "mutating", Path: "/mutate", Outcome: webhook.Mutated,
		Code: 200, Duration: 1250 * time.Microsecond, Novel: true, Key: "0123abcd", Request: []byte(`{"request":{"uid":"u"}}`),
		Answer: []byte(`{"response":{"uid":"u","allowed":true,"patch":"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0="}}`)}
	if err != nil || len(calls) != 1 || !reflect.DeepEqual(calls[0], want) {
		t.Errorf("\n got %+v, %v\nwant %+v", calls, err, want)
	}
}

func TestReadAnswers(t *testing.T) {
	for in, want := range map[string]string{
		`null`: "", `"plain\ntext"`: "plain\ntext", `{"kind":"Status"}`: `{"kind":"Status"}`,
		`{"response":{"patch":"?"}}`: `{"response":{"patch":"?"}}`, `{"response":null}`: `{"response":null}`, `{"response":{"patch": [ ] }}`: `{"response":{"patch": "WyBd" }}`,
	} {
		head, _, _ := strings.Cut(goodLine, `"answer":`)
		line := head + `"answer":` + in + "}\n"
		calls, report, err := readAll(strings.NewReader(line))
		if err != nil || len(calls) != 1 || string(calls[0].Answer) != want {
			t.Errorf("%s: got %+v, %+v, %v", in, calls, report, err)
		}
	}
}

// TestReadBadFiles reads files that are damaged, each plain and compressed.
func TestReadBadFiles(t *testing.T) {
	const good = goodLine + "\n"
	for _, in := range []struct {
		reason, text string
		calls        int
		skipped      []SkippedLine
		cutOff       bool
	}{
		{reason: "an empty file"},
		{reason: "empty lines", text: "\n\n" + good + "\n", calls: 1},
		{reason: "lines of Windows", text: goodLine + "\r\n" + goodLine + "\r\n", calls: 2},
		{reason: "no newline at the end", text: good + goodLine, calls: 2},
		{reason: "text", text: good + "hello\n" + good, calls: 2, skipped: []SkippedLine{{2, "invalid character 'h' looking for beginning of value"}}},
		{reason: "other JSON", text: `{"kind":"Event"}` + "\n[]\n" + good, calls: 1, skipped: []SkippedLine{{1, "not a recorded call"}, {2, "cannot unmarshal array"}}},
		{reason: "no request", text: `{"format":"admitkit-record/1"}` + "\n" + good, calls: 1, skipped: []SkippedLine{{1, "it has no request"}}},
		{reason: "a bad request", text: `{"format":"admitkit-record/1","request":[]}` + "\n" + good, calls: 1, skipped: []SkippedLine{{1, "it has no request"}}},
		{reason: "a bad answer", text: `{"format":"admitkit-record/1","request":{},"answer":[]}` + "\n" + good, calls: 1, skipped: []SkippedLine{{1, "the answer is an array"}}},
		{reason: "a bad duration", text: strings.Replace(good, "0.00125", "-1", 1) + good, calls: 1, skipped: []SkippedLine{{1, "the duration is -1 s"}}},
		{reason: "a bad time", text: strings.Replace(good, "2026", "x", 1) + good, calls: 1, skipped: []SkippedLine{{1, "parsing time"}}},
		{reason: "a long line", text: strings.Repeat("x", maxLineBytes+1) + "\n" + good, calls: 1, skipped: []SkippedLine{{1, "longer than 32 MiB"}}},
		{reason: "a cut in the last line", text: good + goodLine[:100], calls: 1, cutOff: true},
		{reason: "a cut in the first line", text: goodLine[:100], cutOff: true},
	} {
		for _, data := range [][]byte{[]byte(in.text), compressed(in.text)} {
			t.Run(in.reason, func(t *testing.T) {
				calls, report, err := readAll(iotest.HalfReader(bytes.NewReader(data)))
				if err != nil || len(calls) != in.calls || report.Calls != in.calls || report.Skipped != len(in.skipped) || (report.CutOff != nil) != in.cutOff {
					t.Fatalf("got %d calls, %+v, %v", len(calls), report, err)
				}
				for i, want := range in.skipped {
					if got := report.Examples[i]; got.Line != want.Line || !strings.Contains(got.Reason, want.Reason) {
						t.Errorf("got %+v, want %+v", got, want)
					}
				}
			})
		}
	}
}

// TestReadCutOff cuts a compressed file at every byte. All calls before the cut that the compression has written must be
// read, and the cut must be reported.
func TestReadCutOff(t *testing.T) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	flushed := 0
	var ends []int
	for range 5 {
		_, _ = z.Write([]byte(goodLine + "\n"))
		_ = z.Flush()
		ends = append(ends, out.Len())
	}
	_ = z.Close()
	for n := 1; n < out.Len(); n++ {
		for flushed < len(ends) && n >= ends[flushed] {
			flushed++
		}
		calls, report, err := readAll(bytes.NewReader(out.Bytes()[:n]))
		if err != nil || len(calls) < flushed || report.CutOff == nil {
			t.Fatalf("%d bytes: got %d calls, want %d, %+v, %v", n, len(calls), flushed, report, err)
		}
	}
	broken := bytes.Clone(out.Bytes())
	broken[len(broken)-6] ^= 1 // the checksum
	if calls, report, err := readAll(bytes.NewReader(broken)); err != nil || len(calls) != 5 || !errors.Is(report.CutOff, gzip.ErrChecksum) {
		t.Errorf("got %d calls, %+v, %v", len(calls), report, err)
	}
	if calls, report, err := readAll(bytes.NewReader(append(compressed(goodLine+"\n"), compressed(goodLine)...))); err != nil || len(calls) != 2 || report.CutOff != nil {
		t.Errorf("two files in one: got %d calls, %+v, %v", len(calls), report, err)
	}
}

// TestReadOtherVersion requires a clear error for a file of another version, even if its members have other types.
func TestReadOtherVersion(t *testing.T) {
	for _, line := range []string{`{"format":"admitkit-record/2","request":{}}`, `{"format":"admitkit-record/2","time":7}`} {
		calls, report, err := readAll(strings.NewReader(goodLine + "\n" + line + "\n" + goodLine + "\n"))
		var version *VersionError
		const want = `line 2 has the format "admitkit-record/2", and this version reads "admitkit-record/1" only: use the version of admitkit that wrote the file`
		if !errors.As(err, &version) || err.Error() != want || len(calls) != 1 || report.Lines != 2 {
			t.Errorf("got %d calls, %+v, %v", len(calls), report, err)
		}
	}
}

// TestReadError requires that an error of the file is returned, and is no cut.
func TestReadError(t *testing.T) {
	broken := errors.New("broken disk")
	for _, data := range [][]byte{[]byte(goodLine + "\n"), compressed(goodLine + "\n")[:60], nil} {
		_, report, err := readAll(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) || report.CutOff != nil {
			t.Errorf("got %+v, %v", report, err)
		}
	}
}

// TestReadManyBadLines requires that the examples are bounded.
func TestReadManyBadLines(t *testing.T) {
	_, report, err := readAll(strings.NewReader(strings.Repeat("x\n", 1000)))
	if err != nil || report.Skipped != 1000 || len(report.Examples) != maxExamples || report.Lines != 1000 {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestReadInBoundedMemory reads 64 MB of calls, and a line of 64 MB.
func TestReadInBoundedMemory(t *testing.T) {
	const size = 64 << 20
	line := []byte(goodLine + "\n")
	reader, writer := io.Pipe()
	go func() {
		block := bytes.Repeat(line, 1000)
		for n := 0; n < size; n += len(block) {
			_, _ = writer.Write(block) // the reader reads everything
		}
		block = bytes.Repeat([]byte{'x'}, 1<<20)
		for range size >> 20 {
			_, _ = writer.Write(block)
		}
		_ = writer.Close()
	}()
	r := NewReader(reader)
	before, most := heap(), int64(0)
	for call, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		if call.Line%50_000 == 0 {
			most = max(most, heap()-before)
		}
	}
	if most = max(most, heap()-before); most > 8<<20 || r.Report().Calls < size/len(line) || r.Report().CutOff == nil && r.Report().Skipped != 1 {
		t.Errorf("%d bytes of memory for %+v", most, r.Report())
	}
	runtime.KeepAlive(r)
}

// FuzzReader requires that no file makes the reader fail or run forever, and that the calls it returns can be written
// and read again.
func FuzzReader(f *testing.F) {
	f.Add([]byte(goodLine + "\nx\n" + goodLine))
	f.Add(compressed(goodLine + "\n"))
	f.Add(compressed(goodLine + "\n")[:50])
	f.Add([]byte(`{"format":"admitkit-record/2"}`))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		calls, report, err := readAll(bytes.NewReader(data))
		if report.Calls != len(calls) || report.Calls+report.Skipped > report.Lines {
			t.Fatalf("got %d calls, %+v", len(calls), report)
		}
		var version *VersionError
		if err != nil && !errors.As(err, &version) {
			t.Fatal(err)
		}
		for _, call := range calls {
			own := *call
			own.Answer = fmt.Appendf(nil, "%q", "text")
			again, report, err := readAll(bytes.NewReader(own.appendLine(nil)))
			if err != nil || len(again) != 1 || string(again[0].Request) != string(call.Request) || string(again[0].Answer) != "text" {
				t.Fatalf("%+v was read as %+v, %+v, %v", call, again, report, err)
			}
		}
	})
}

// TestReadFileOfARecorder requires that a file stays readable in this version of the format.
func TestReadFileOfARecorder(t *testing.T) {
	f, err := os.Open("testdata/version1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	calls, report, err := readAll(f)
	if err != nil || len(calls) != 4 || report.Skipped != 0 {
		t.Fatalf("got %d calls, %+v, %v", len(calls), report, err)
	}
	for i, want := range []webhook.Outcome{webhook.Allowed, webhook.Mutated, webhook.Denied, webhook.Failed} {
		if got := calls[i]; got.Outcome != want || got.Time.IsZero() || got.Duration <= 0 || len(got.Answer) == 0 {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}
