// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
)

// A storedCase is the content of the file of a stored case.
type storedCase struct {
	Webhooks    []string    `json:"webhooks"`
	FailureMode FailureMode `json:"failureMode"`
	Summary     string      `json:"summary"`
	Case        Case        `json:"case"`

	file string
}

// readCase reads the file of a stored case.
func readCase(file string) (*storedCase, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &storedCase{file: file}
	wire := struct {
		*storedCase
		Way json.RawMessage `json:"way"` // name of failureMode in older files
	}{storedCase: c}
	if err := json.Unmarshal(text, &wire); err != nil {
		return nil, fmt.Errorf("%s is not a stored case: %w", file, err)
	}
	if wire.Way != nil {
		return nil, fmt.Errorf(`%s is not a stored case: the key "way" is now "failureMode"`, file)
	}
	return c, nil
}

// storedCases reads the stored cases, which the run checks first. It notes unreadable files in the report. With
// Options.Replay, it reads only that file and returns an error if this fails.
func (r *Report) storedCases(o options) ([]*storedCase, error) {
	if o.only != "" {
		c, err := readCase(o.only)
		return []*storedCase{c}, err
	}
	if o.dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(o.dir, folderOf(r.Webhooks), "L*.json"))
	var cases []*storedCase
	for _, file := range files {
		c, err := readCase(file)
		if err != nil {
			r.Replayed = append(r.Replayed, Replayed{File: file, Verdict: Inconclusive, Reason: &Reason{Code: ReasonBadStoredCase, Detail: strings.TrimPrefix(err.Error(), file+" ")}})
			continue
		}
		cases = append(cases, c)
	}
	return cases, err
}

// folderOf returns the name of the folder for the cases of the webhooks. It consists of their names, with each unsafe
// character replaced.
func folderOf(webhooks []string) string {
	return strings.Map(func(c rune) rune {
		if c == '.' || c == '-' || c == '+' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, strings.Trim(strings.Join(webhooks, "+"), "."))
}

// store writes each failing case that is not stored yet to a file.
func (r *Report) store(o options) {
	for _, v := range r.Findings {
		if v.Verdict == Advice || v.Case.Variant == Variant(laws.AfterRun) { // a replay lacks the other requests of the run
			continue
		}
		if v.File == "" && o.dir != "" && o.only == "" {
			file, err := r.storeCase(o.dir, v)
			if err != nil {
				r.Notes = append(r.Notes, Reason{Code: ReasonCaseNotStored, Detail: err.Error()})
				continue
			}
			v.File = file
		}
	}
}

func (r *Report) storeCase(dir string, v *Violation) (file string, err error) {
	id, err := json.Marshal(v.Case)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(id)
	file = filepath.Join(dir, folderOf(r.Webhooks), fmt.Sprintf("%s-%s.json", v.Law, hex.EncodeToString(sum[:4])))
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(storedCase{Webhooks: r.Webhooks, FailureMode: v.FailureMode, Summary: v.Summary, Case: v.Case}); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, text.Bytes(), 0o644)
}
