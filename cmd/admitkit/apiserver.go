// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newAPIServer(_ *screen.Screen) *cobra.Command {
	return &cobra.Command{
		Use:     "apiserver",
		Short:   "Build, find and start a real API server",
		GroupID: "tools",
		RunE:    func(*cobra.Command, []string) error { return problem.New("not there yet") },
	}
}
