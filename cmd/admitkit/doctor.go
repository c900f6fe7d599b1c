// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/doctor"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

func newDoctor(s *screen.Screen) *cobra.Command {
	var o doctor.Options
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Find what is wrong with the webhooks of a cluster",
		GroupID: "check",
		Long: `Find what is wrong with the webhooks of your kubeconfig's cluster, worst first.
doctor finds webhooks that the API server cannot reach. It covers admission
webhooks, conversion webhooks of custom resources, and aggregated API servers.
It changes nothing.

Exit codes:

  0  no finding of the --fail-on severity or worse
  1  at least one such finding
  2  the cluster could not be read; or doctor found nothing, but you lack
     permissions, so that it could not check everything`,
		Example: `
admitkit doctor
admitkit doctor --context production -o text -o json=doctor.json`,
		Args: arguments(),
	}
	outputs := outputFlag(c, doctor.Forms()...)
	flags := c.Flags()
	o.Flags.Add(flags)
	flags.StringVar(&o.FailOn, "fail-on", "warning", "lowest severity that makes the exit code 1: error, warning or advice")
	flags.DurationVar(&o.ExpiresWithin, "expires-within", 7*24*time.Hour, "report certificates that expire within this time")
	_ = c.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"error", "warning", "advice"}, cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag does not exist
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := outputs.Check(s); err != nil {
			return err
		}
		report, err := doctor.Run(c.Context(), s, o)
		if err != nil {
			return err
		}
		if err := outputs.Write(s, report.Write); err != nil {
			return err
		}
		switch {
		case report.Failed():
			return problem.ErrFound
		case report.Incomplete():
			return problem.New("the result is incomplete: doctor found nothing, but you lack permissions").Hint("kubectl auth whoami; kubectl auth can-i --list")
		}
		return nil
	}
	return c
}
