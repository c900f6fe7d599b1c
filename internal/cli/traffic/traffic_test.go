// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/pkg/record"
)

// line returns a line of a recording.
func line(request string) string {
	return fmt.Sprintf(`{"format":%q,"path":"/a","outcome":"allowed","code":200,"durationSeconds":0.1,"request":%s,"answer":{}}`, record.Format, request) + "\n"
}

const review = `{"kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"operation":"CREATE","object":{"kind":"Pod"}}}`

// compressed returns a text, compressed with gzip.
func compressed(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// written writes a text into a file, and returns the name of the file.
func written(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "calls.jsonl.gz")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// read reads one recording. It returns what was read, and the notes.
func read(t testing.TB, name string, each func(*Call) error) (files []File, notes string, err error) {
	t.Helper()
	var all []string
	files, err = Read(t.Context(), []string{name}, &screen.Screen{In: strings.NewReader(""), Out: new(bytes.Buffer), Err: new(bytes.Buffer)},
		func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }, each)
	return files, strings.ReplaceAll(strings.Join(all, "\n"), name, "FILE"), err
}

func TestRead(t *testing.T) {
	changed := func(old, replacement string) string { return line(strings.Replace(review, old, replacement, 1)) }
	whole := compressed(t, strings.Repeat(line(review), 100))
	for _, row := range []struct {
		name, text   string
		calls, lines int
		skipped      int
		note         string // a part of the notes; empty if no note is expected
	}{
		{"plain", line(review) + line(review), 2, 2, 0, ""},
		{"compressed", whole, 100, 100, 0, ""},
		{"several members", compressed(t, line(review)) + compressed(t, line(review)), 2, 2, 0, ""},
		{"empty lines", "\n" + line(review) + "\n", 1, 3, 0, ""},
		{"v1beta1", changed(`"kind":"AdmissionReview"`, `"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"`), 1, 1, 0, ""},
		{"deletion", changed(`"operation":"CREATE","object":{"kind":"Pod"}`, `"operation":"DELETE","object":null,"oldObject":{"kind":"Pod"}`), 1, 1, 0, ""},
		{"cut off", whole[:len(whole)-12] + "x", 100, 100, 0, "FILE: read in part: it is cut off or damaged after line 100: unexpected EOF"},
		{"damaged", whole[:len(whole)-5] + "xxxxx", 100, 100, 0, "FILE: read in part: it is cut off or damaged after line 100: gzip: invalid checksum"},
		{"cut off line", line(review) + line(review)[:50], 1, 2, 0, "FILE: read in part: it is cut off or damaged after line 2: unexpected EOF"},
		{"another version", line(review) + `{"format":"admitkit-record/9"}` + "\n" + line(review), 1, 2, 0, `FILE: read in part: line 2 has the format "admitkit-record/9", and this version reads`},
		{"no recording", line(review) + "a: b\n{}\n", 1, 3, 2, "FILE: skipped 2 lines of 3: line 2: invalid character 'a' looking for beginning of value; line 3: not a recorded call"},
		{"no request", line(review) + line("{}"), 1, 2, 1, "FILE: skipped 1 line of 2: line 2: its AdmissionReview has no request"},
		{"invalid request", changed(`"u"`, "7") + line(review), 1, 2, 1, "line 1: its AdmissionReview is invalid: "},
		{"case of names", changed(`"request"`, `"Request"`) + line(review), 1, 2, 1, "line 1: its AdmissionReview has no request"},
		{"no kind", changed(`"kind":"Pod"},`, `"kind":""},`) + line(review), 1, 2, 1, "line 1: its request has no kind or no resource"},
		{"no operation", changed(`"CREATE"`, `"\u0007READ"`) + line(review), 1, 2, 1, `line 1: its request has the operation "\aREAD"`},
		{"object is a list", changed(`{"kind":"Pod"}}`, `[]}`) + line(review), 1, 2, 1, "line 1: an object in its request is not a JSON object"},
		{"many", strings.Repeat("{}\n", 1000) + line(review), 1, 1001, 1000, "line 5: not a recorded call; and 995 more"},
	} {
		t.Run(row.name, func(t *testing.T) {
			name, got := written(t, row.text), 0
			files, notes, err := read(t, name, func(c *Call) error {
				if got++; c.File != name || c.Review.Kind.Kind != "Pod" || c.Where() != fmt.Sprintf("%s:%d", name, c.Line) {
					t.Errorf("%+v", c)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if f := files[0]; got != row.calls || f.Calls != row.calls || f.Lines != row.lines || f.Skipped != row.skipped {
				t.Errorf("got %d calls, %+v", got, f)
			}
			if !strings.Contains(notes, row.note) || (row.note == "") != (notes == "") {
				t.Errorf("notes:\n%s\nwant:\n%s", notes, row.note)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	none := func(*Call) error { return errors.New("no call was expected") }
	for _, row := range []struct{ name, text, want, note string }{
		{"empty", "", "--traffic: no recorded call is readable in ", "FILE: the file is empty"},
		{"no gzip", "\x1f\x8bxxxxxxxxxxxx", "no recorded call is readable in ", "FILE: read in part: it is cut off or damaged after line 0: gzip: invalid header"},
		{"another version", `{"format":"admitkit-record/9"}`, "no recorded call is readable in ", "line 1 has the format"},
		{"text", "hello\n", "no recorded call is readable in ", "FILE: skipped 1 line of 1: line 1: "},
		{"error of each", line(review), "no call was expected", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, notes, err := read(t, written(t, row.text), none)
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(notes, row.note) {
				t.Errorf("%v\n%s", err, notes)
			}
		})
	}
	t.Run("folder without recordings", func(t *testing.T) {
		if _, _, err := read(t, t.TempDir(), none); err == nil || !strings.Contains(err.Error(), " has no files *.jsonl or *.jsonl.gz") {
			t.Error(err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, text := range []string{line(review), "no call\n"} {
			_, err := Read(ctx, []string{written(t, text)}, &screen.Screen{Err: new(bytes.Buffer)}, func(string, ...any) {}, none)
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// FuzzRead reads any file. Read must not panic, and must count each line at most once. Calls must have a kind, a resource and
// an operation.
func FuzzRead(f *testing.F) {
	f.Add([]byte(line(review) + "{}\n"))
	f.Add([]byte(compressed(f, line(review))))
	f.Add([]byte(line(`{"request":{"kind":null,"object":"x"}}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		calls := 0
		files, _, err := read(t, written(t, string(text)), func(c *Call) error {
			if calls++; c.Review.Kind.Kind == "" || c.Review.Resource.Resource == "" || c.Review.Operation == "" {
				t.Errorf("%+v", c.Review)
			}
			return nil
		})
		if (err != nil) != (calls == 0) {
			t.Errorf("%d calls, %v", calls, err)
		}
		for _, file := range files {
			if file.Calls != calls || file.Calls+file.Skipped > file.Lines || len(file.Examples) > maxExamples {
				t.Errorf("%+v", file)
			}
		}
	})
}
