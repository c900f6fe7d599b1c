// SPDX-License-Identifier: Apache-2.0

// Deny-policy is an admission webhook with the rules of a team that operates clusters.
package main

import (
	"context"
	"flag"

	"github.com/admitkit/admitkit/examples/deny-policy/policy"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func main() { newProgram().Main() }

func newProgram() program.Program {
	ledger := &policy.FileLedger{}
	return program.Program{
		Name: "deny-policy",
		Flags: func(flags *flag.FlagSet) {
			flags.StringVar(&ledger.Path, "ledger", "/ledger/namespaces.jsonl", "`file` that new namespaces are recorded in")
		},
		Hooks: func(context.Context, *program.Deps) ([]*webhook.Hook, error) { return policy.Hooks(ledger), nil },
	}
}
