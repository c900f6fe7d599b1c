// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newVersion(s *screen.Screen) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of admitkit, Kubernetes' libraries and Go",
		GroupID: "tools",
		Args:    arguments(),
		RunE: func(*cobra.Command, []string) error {
			admitkit, kubernetes := "unknown", "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				admitkit = info.Main.Version
				for _, m := range info.Deps {
					if m.Path == "k8s.io/api" {
						kubernetes = m.Version
					}
				}
			}
			fmt.Fprintf(s.Out, "admitkit %s\nk8s.io libraries %s\n%s %s/%s\n", admitkit, kubernetes, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
