// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newExplain(_ *screen.Screen) *cobra.Command {
	return &cobra.Command{
		Use:     "explain",
		Short:   "Tell which webhooks would be called for an object, and why",
		GroupID: "judge",
		RunE:    func(*cobra.Command, []string) error { return problem.New("not there yet") },
	}
}
