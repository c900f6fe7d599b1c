// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newAudit(_ *screen.Screen) *cobra.Command {
	return &cobra.Command{
		Use:     "audit FILE...",
		Short:   "Tell from audit logs what webhooks did",
		GroupID: "judge",
		RunE:    func(*cobra.Command, []string) error { return problem.New("not there yet") },
	}
}
