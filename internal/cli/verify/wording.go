// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// flagHints are hints that name flags of the command. They replace the hints of package idempotence, which name Go
// options.
var flagHints = idempotence.Hints{
	idempotence.ReasonUnknownKinds:         "add an object that it handles, or the definition of the custom resource, with -f",
	idempotence.ReasonCertificateName:      "set --server-name",
	idempotence.ReasonCertificateUntrusted: "set --ca-file",
	idempotence.ReasonSamplesNeeded:        "add objects that it changes with -f",
	idempotence.ReasonValidSampleNeeded:    "add a valid object with -f, or correct the fields that the message names. A field that the webhook itself fills may be absent",
	idempotence.ReasonBudgetSpent:          "raise --budget, or lower --objects",
	idempotence.ReasonEffectsUnwatched:     "set --observe to watch it",
	idempotence.ReasonLawExcluded:          "the command line excludes it",
	idempotence.ReasonScopeAssumed:         "if it is not, set the scope of the rule, or add the definition with -f",
	idempotence.ReasonKindNotTried:         "add one with -f, or delete the file",
	idempotence.ReasonRivalMissing:         "delete the file",
	idempotence.ReasonTimeGapsMissing:      "only the Go test that found it can repeat it",
}

// wording returns the texts of a report in terms of the command line.
func (r *runner) wording() idempotence.Wording {
	return idempotence.Wording{
		Hints: flagHints,
		RunAgain: func(report *idempotence.Report) string {
			if r.RunAgain != "" {
				return r.RunAgain
			}
			return fmt.Sprintf("%s --seed %d --objects %d", r.Line, report.Seed, report.MaxObjects)
		},
		Declare: func(e idempotence.Exception) string {
			return fmt.Sprintf("- {path: %q, law: %s, reason: %s}", e.Path, e.Law, e.Reason)
		},
		ReplayCase: func(file string) string {
			if r.RunAgain != "" {
				return r.RunAgain + "   # with the flag --replay " + textutil.ShellQuote(file)
			}
			return r.Line + " --replay " + textutil.ShellQuote(file)
		},
	}
}

// undecided returns the error for a run in which no law fails, but not all laws pass.
func undecided(r *idempotence.Report) error {
	has := func(code idempotence.ReasonCode) bool {
		return slices.ContainsFunc(r.Incomplete, func(reason idempotence.Reason) bool { return reason.Is(code) })
	}
	err := problem.New("no law fails, but too few cases were tested to decide all laws")
	switch {
	case has(idempotence.ReasonBrokenConnections):
		return problem.New("no law fails, but the server broke too many connections to decide all laws").
			Hint("check the log of the webhook and of the proxy in front of it")
	case has(idempotence.ReasonNoValidObject):
		return err.Hint("to see why the samples are rejected: kubectl apply --dry-run=server -f FILE")
	case has(idempotence.ReasonBudgetSpent):
		return err.Hint("--budget 10m, or --objects 10")
	case has(idempotence.ReasonSamplesNeeded):
		return err.Hint("-f FILE, with an object that the webhook changes")
	}
	return err
}
