// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newInit(_ *screen.Screen) *cobra.Command {
	return &cobra.Command{
		Use:     "init NAME",
		Short:   "Scaffold a webhook project that builds, tests and deploys",
		GroupID: "write",
		RunE:    func(*cobra.Command, []string) error { return problem.New("not there yet") },
	}
}
