// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"io"
	"strings"

	"github.com/admitkit/admitkit/internal/junit"
)

// writeJUnit writes a test case for each finding, and one for each configuration without findings. A case fails if its
// finding makes the run fail, and is skipped if the finding is suppressed. Other findings are in the output of their
// cases.
func (r *Report) writeJUnit(w io.Writer) error {
	suite := junit.Suite{Name: "admitkit lint"}
	about := map[string]bool{}
	for _, f := range r.Findings {
		about[f.Object] = true
		suite.Cases = append(suite.Cases, r.caseOf(f))
	}
	for _, object := range r.objects {
		if !about[object] {
			suite.Cases = append(suite.Cases, junit.Case{Class: object, Name: "no findings"})
		}
	}
	return junit.Write(w, suite)
}

func (r *Report) caseOf(f Finding) junit.Case {
	c := junit.Case{Class: f.Object, Name: strings.TrimSpace(f.Rule + " " + f.about()), File: f.File, Line: f.Line}
	if f.Object == "" {
		c.Class = f.File
	}
	text := fmt.Sprintf("%s: %s %s\n%s\nfix: %s\n%s\n", f.where(), f.Severity, f.Rule, f.Message, f.Fix, f.Link)
	switch {
	case f.Suppressed != "":
		c.Skipped = &junit.Skipped{Message: f.Suppressed}
	case r.counts(f):
		c.Failures = []junit.Failure{{Type: f.Rule, Message: f.Message, Text: text}}
	default:
		c.Out = &junit.Text{Text: text}
	}
	return c
}
