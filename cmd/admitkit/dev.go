// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newDev(_ *screen.Screen) *cobra.Command {
	return &cobra.Command{
		Use:     "dev",
		Short:   "Run the hooks of this project behind a real API server, rebuilt on change",
		GroupID: "write",
		RunE:    func(*cobra.Command, []string) error { return problem.New("not there yet") },
	}
}
