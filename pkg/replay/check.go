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
// warnings or audit annotations is only logged.
//
// An intended change is accepted by running the test with ADMITKIT_UPDATE=1, or with -update if the test binary defines this
// flag. Check then writes the file answers.golden into the folder. It has one line for each call, so that a reviewer sees
// which answers change. From then on, Check compares with this file instead of the recorded answers.
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
	case len(r.Notes)+len(r.NotCompared) > 0:
		t.Logf("%s", &text)
	}
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
		err := r.read(name, func(at place, call *record.Call) error {
			req, err := review.Decode(call.Request)
			if err != nil {
				return fmt.Errorf("replay: %s line %d: the recorded request is invalid: %w", at.file, at.line, err)
			}
			a, _, err := r.answer(ctx, Handler(h), req, call, "")
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%s:%d %s %s %s: %s\n", filepath.Base(at.file), at.line, req.Operation, resourceOf(req), objectOf(req), a.golden())
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if out.Len() == 0 {
		return nil, &UnreadableError{Files: r.report.Files}
	}
	return out.Bytes(), nil
}

// golden describes the answer in one line, including the patch.
func (a *answer) golden() string {
	text := a.String()
	if a.failure == "" && a.allowed && len(a.patch) > 0 {
		text = "allowed, with the patch " + string(a.patch)
	}
	if a.changes != "" {
		text += ", withheld: " + a.changes
	}
	if notes := a.notes(); notes != "" {
		text += "; " + strings.ReplaceAll(notes, "\n", "; ")
	}
	return textutil.VisibleLine(text)
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
