// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

// proofOf returns a part of the results of admitkit verify, as JSON. The text in with replaces the result for law.
func proofOf(law, with string) string {
	var laws []string
	for _, name := range []string{"L1", "L2", "L4a", "L4b"} {
		text := `{"law": "` + name + `", "kind": "v1 Pod", "verdict": "passes", "cases": 3}`
		if name == law {
			text = with
		}
		if text != "" {
			laws = append(laws, text)
		}
	}
	return `"kinds": ["v1 Pod"], "laws": [` + strings.Join(laws, ", ") + `]`
}

func TestProofs(t *testing.T) {
	good := proofOf("", "")
	const about = `{"webhooks": ["a.example.com"], `
	rows := []struct{ reason, text, want string }{
		{"all laws pass", about + good + `}`, ""},
		{"advice is not a failure", about + good + `, "findings": [{"law": "L5", "verdict": "advice"}]}`, ""},
		{"it is about another webhook", `{"webhooks": ["b.example.com"], ` + good + `}`, "covers only b.example.com"},
		{"the results are incomplete", about + `"incomplete": [{"code": "NoAnswer"}], ` + good + `}`, "is incomplete: the run ended early"},
		{"a law fails", about + good + `, "findings": [{"law": "L1", "verdict": "fails"}]}`, "has a law that fails"},
		{"no law was tested", about + `"kinds": []}`, "has no law that passes"},
		{"L2 alone does not test a second call", about + proofOf("L1", "") + `}`, "second call (L1) passes for v1 Pod: the law was not tested"},
		{"a law was skipped", about + proofOf("L4b", `{"law": "L4b", "kind": "v1 Pod", "verdict": "not applicable", "reason": {"code": "LawExcluded"}}`) + `}`, "late additions (L4b) passes for v1 Pod: Options.Without excludes it"},
		{"nothing to edit is safe from edits", about + proofOf("L4a", `{"law": "L4a", "kind": "v1 Pod", "verdict": "not applicable", "reason": {"code": "NothingToEdit"}}`) + `}`, ""},
		{"L1 always applies", about + proofOf("L1", `{"law": "L1", "kind": "v1 Pod", "verdict": "not applicable", "reason": {"code": "Note", "detail": "nothing"}}`) + `}`, "second call (L1) passes for v1 Pod: nothing"},
		{"no case", about + proofOf("L2", `{"law": "L2", "kind": "v1 Pod", "verdict": "passes"}`) + `}`, "own output (L2) passes for v1 Pod: no case was tested"},
		{"inconclusive", about + proofOf("L2", `{"law": "L2", "kind": "v1 Pod", "verdict": "inconclusive"}`) + `}`, "own output (L2) passes for v1 Pod: inconclusive"},
		{"another kind was not tested", about + strings.Replace(good, `["v1 Pod"]`, `["v1 Pod", "v1 Service"]`, 1) + `}`, "second call (L1) passes for v1 Service: the law was not tested"},
		{"no JSON", `<html>`, "invalid character"},
	}
	for _, row := range rows {
		_, err := proves([]byte(row.text), "a.example.com")
		if (err == nil) != (row.want == "") || (err != nil && !strings.Contains(err.Error(), row.want)) {
			t.Errorf("got %v, want %q: %s", err, row.want, row.reason)
		}
	}
}

// TestProofFiles checks that a configuration can only name proof files below its own folder.
func TestProofFiles(t *testing.T) {
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside.json")
	good := []byte(`{"webhooks": ["a.example.com"], ` + proofOf("", "") + `}`)
	for name, text := range map[string][]byte{outside: good, "good.json": good, "large.json": append(good, bytes.Repeat([]byte(" "), maxProofSize)...)} {
		if !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link.json")); err != nil {
		t.Fatal(err)
	}
	configuration := filepath.Join(folder, "hooks.yaml")
	rows := []struct{ configuration, file, want, reason string }{
		{configuration, "good.json", "", "beside the configuration"},
		{configuration, "./good.json", "", "another spelling of the path"},
		{configuration, "none.json", "no such file", "not there"},
		{configuration, "large.json", "larger than 16 MiB", "larger than any results"},
		{configuration, "link.json", "escapes", "a link to a file outside"},
		{configuration, outside, "not below the folder", "an absolute path"},
		{configuration, "/dev/zero", "not below the folder", "an endless device"},
		{configuration, "../good.json", "not below the folder", "a file above the folder"},
		{configuration, "", "not below the folder", "no name"},
		{configuration, ".", "not a regular file", "a folder"},
		{"-", "good.json", "not from a cluster or standard input", "standard input has no folder"},
		{"", "good.json", "not from a cluster or standard input", "a cluster has no folder"},
	}
	for _, row := range rows {
		_, err := provesBeside(row.configuration, row.file, "a.example.com")
		if (err == nil) != (row.want == "") || (err != nil && !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: got %v, want %q: %s", row.file, err, row.want, row.reason)
		}
	}
}

// TestExceptionsOfProofs checks that a note lists the exceptions of a proof.
func TestExceptionsOfProofs(t *testing.T) {
	var notes bytes.Buffer
	t.Chdir(t.TempDir())
	proof := `{"webhooks": ["sidecar.example.com"], ` + proofOf("", "") + `, "exceptions": [
		{"path": "metadata.annotations[at]", "reason": "a time"}, {"path": "spec", "law": "L12", "reason": "a rival"}]}`
	text := strings.Replace(hooks, "annotations:", "annotations:\n    lint.admitkit.dev/proof: sidecar.example.com=proof.json", 1)
	for name, text := range map[string]string{"proof.json": proof, "hooks.yaml": text} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Run(t.Context(), &screen.Screen{Err: &notes}, Options{Paths: []string{"hooks.yaml"}, Severity: "advice", FailOn: "warning"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "sidecar.example.com has exceptions: metadata.annotations[at] (a time)\n"
	if !strings.HasSuffix(notes.String(), want) {
		t.Errorf("got %q, want %q", notes.String(), want)
	}
}
