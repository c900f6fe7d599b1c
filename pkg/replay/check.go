// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/review"
)

// TB has the methods of testing.TB that [Check] calls.
type TB interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// goldenName is the name of the file with the intended answers, in the folder of the recordings.
const goldenName = "answers.golden"

// Check replays the recordings in a folder against a handler, and fails the test for each cause of a change. A change in
// warnings or audit annotations is only logged. The test also fails if a part of the recordings cannot be read.
//
// An intended change is accepted by running the test with ADMITKIT_UPDATE=1, or with -update if the test binary defines this
// flag. Check then writes the file answers.golden into the folder. It has one line for each call, so that a reviewer sees
// which answers change. From then on, Check compares with this file instead of the recorded answers, and warnings and audit
// annotations count. The file has the effect of a patch, not its operations. Secrets that the recorder would replace are
// not in the file.
//
// Commit the folder to version control. The answers must not depend on a cluster, the time or other calls.
func Check(t TB, h http.Handler, folder string) {
	t.Helper()
	name := filepath.Join(folder, goldenName)
	golden, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("replay: %v", err)
		return
	}
	switch {
	case updating() || err == nil:
		lines, linesErr := answersOf(t.Context(), h, folder)
		if linesErr != nil {
			t.Fatalf("%v", linesErr)
			return
		}
		if updating() {
			if err := os.WriteFile(name, lines, 0o644); err != nil { //nolint:gosec // the file is part of the source
				t.Fatalf("replay: %v", err)
			}
			return
		}
		if text := differing(string(golden), string(lines)); text != "" {
			t.Errorf("the answers differ from %s:\n%s%s", name, text, howToUpdate)
		}
	default:
		checkRecorded(t, h, folder)
	}
}

const howToUpdate = "If this is intended, run the test once with ADMITKIT_UPDATE=1, and review the file " + goldenName + "."

// updating reports whether the user asks for new golden files.
func updating() bool {
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		return true
	}
	return os.Getenv("ADMITKIT_UPDATE") == "1"
}

func checkRecorded(t TB, h http.Handler, folder string) {
	t.Helper()
	r, err := Run(t.Context(), Options{Files: []string{folder}, New: Handler(h)})
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	var text bytes.Buffer
	_ = r.WriteText(&text, Painter{}) // a buffer never fails
	switch {
	case r.Changed > 0 || r.Compared() == 0:
		t.Errorf("%s%s", &text, howToUpdate)
	case damaged(r.Files) != nil:
		t.Errorf("%s%v", &text, damaged(r.Files))
	case len(r.Notes)+len(r.NotCompared) > 0:
		t.Logf("%s", &text)
	}
}

// damaged returns an error if parts of the files could not be read.
func damaged(files []File) error {
	var parts []string
	for _, f := range files {
		for _, problem := range f.Problems {
			parts = append(parts, f.Name+": "+problem)
		}
	}
	if parts == nil {
		return nil
	}
	return fmt.Errorf("replay: parts of the recordings could not be read:\n%s", strings.Join(parts, "\n"))
}

// answersOf returns one line for the answer to each call.
func answersOf(ctx context.Context, h http.Handler, folder string) ([]byte, error) {
	files, err := filesOf([]string{folder})
	if err != nil {
		return nil, err
	}
	c, err := newRedaction("", nil)
	if err != nil {
		return nil, err
	}
	r := &runner{redaction: c, report: newReport()}
	var out bytes.Buffer
	for _, name := range files {
		err := r.read(ctx, name, func(at place, call *record.Call) error {
			req, err := review.Decode(call.Request)
			if err != nil {
				return fmt.Errorf("replay: %s line %d: the recorded request is invalid: %w", at.file, at.line, err)
			}
			a, _, err := r.answer(ctx, Handler(h), req, call, call.Key)
			if err != nil {
				return fmt.Errorf("replay: %s line %d: %w", at.file, at.line, err)
			}
			text := fmt.Sprintf("%s:%d %s %s %s: %s", filepath.Base(at.file), at.line, req.Operation, resourceOf(req), objectOf(req), a.golden(req))
			out.WriteString(textutil.VisibleLine(text) + "\n")
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	if out.Len() == 0 {
		return nil, &UnreadableError{Files: r.report.Files}
	}
	return out.Bytes(), damaged(r.report.Files)
}

// golden describes the answer in a line, with the effect of the patch and without secrets.
func (a *answer) golden(req *review.Request) string {
	text := a.withoutSecret((*answer).String)
	if a.failure == "" && a.allowed && len(a.patch) > 0 {
		if text = "allowed"; a.effect(req) != "[]" {
			text += ", with the patch " + a.effect(req)
		}
	}
	if a.changes != "" {
		text += ", withheld: " + a.changes
	}
	if notes := a.withoutSecret((*answer).notes); notes != "" {
		text += "; " + strings.ReplaceAll(notes, "\n", "; ")
	}
	return text
}

// withoutSecret returns a text of the answer, or a placeholder if the text has a secret.
func (a *answer) withoutSecret(of func(*answer) string) string {
	if text := of(a); a.redacted == nil || of(a.redacted) == text {
		return text
	}
	return hidden
}

// effect returns the patch as the shortest one with the same effect, so that the operations of the webhook do not matter.
func (a *answer) effect(req *review.Request) string {
	was, err := decode(req.Object)
	if err != nil {
		return err.Error()
	}
	is, err := decode(a.object)
	if err != nil {
		return err.Error()
	}
	if a.redacted != nil && a.redacted.object != nil {
		if other, err := decode(a.redacted.object); err == nil {
			_, is = withoutSecrets(nil, is, other)
		}
	}
	changes, err := patch.Values(was, is)
	if err != nil {
		return err.Error()
	}
	return string(changes.AppendJSON(nil))
}

// maxLines is the maximum number of differing lines that are shown.
const maxLines = 20

// differing returns the lines that are in only one of the texts: with + those of got, and with - those of want.
func differing(want, got string) string {
	wanted, present := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(want) {
		wanted[line] = true
	}
	var lines []string
	for line := range strings.Lines(got) {
		present[line] = true
		if !wanted[line] {
			lines = append(lines, "+ "+line)
		}
	}
	for line := range strings.Lines(want) {
		if !present[line] {
			lines = append(lines, "- "+line)
		}
	}
	if more := len(lines) - maxLines; more > 0 {
		lines = append(lines[:maxLines], textutil.Count(more, "more line")+"\n")
	}
	return strings.Join(lines, "")
}
