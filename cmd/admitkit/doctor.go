// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/doctor"
	"github.com/admitkit/admitkit/internal/cli/screen"
	checks "github.com/admitkit/admitkit/internal/doctor"
	"github.com/admitkit/admitkit/internal/problem"
)

func newDoctor(s *screen.Screen) *cobra.Command {
	var o doctor.Options
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Find what is wrong with the webhooks of a cluster",
		GroupID: "check",
		Long: `Find what is wrong with the webhooks of your kubeconfig's cluster, worst first.
doctor covers admission webhooks, conversion webhooks of custom resources, and
aggregated API servers. It finds:

  - webhooks that the API server cannot call: the Service, its port or its Pods
    are missing, the network or a NetworkPolicy blocks it, the certificate or the
    caBundle is wrong
  - webhooks that can lock up the cluster, by the rules of "admitkit lint", and
    webhooks without enough replicas
  - webhooks whose calls fail or are slow, from the metrics of the API servers

If the API server rejects requests because of a finding, doctor prints the
commands that make the cluster usable again, in order, and who may run them.

doctor only reads. To check certificates it connects to each webhook, sends a GET
for its path and, if that gets 404, a POST without a body. It reaches Pods through
the API server and the kubelet, as "kubectl port-forward" does, or directly with
--direct. With --probe it also sends dry runs of requests, so that the API server
calls the webhooks. Dry runs need your permission to create or patch such objects.

Without some of the permissions, doctor reports which ones are missing, and checks
the rest.

Exit codes:

  0  no finding of the --fail-on severity or worse
  1  at least one such finding
  2  the cluster could not be read; or doctor found nothing, but you lack
     permissions, so that it could not check everything`,
		Example: `
admitkit doctor
admitkit doctor --probe --context production

# the calls of the next minute, instead of all since the API servers started
admitkit doctor --watch 1m

# also webhooks that undo each other's changes
admitkit doctor --audit-log audit.log

# in a CronJob inside of the cluster
admitkit doctor --direct --ignore no-disruption-budget -o text -o junit=doctor.xml`,
		Args: arguments(),
	}
	outputs := outputFlag(c, doctor.Forms()...)
	flags := c.Flags()
	o.Flags.Add(flags)
	flags.StringVar(&o.FailOn, "fail-on", "warning", "lowest severity that makes the exit code 1: error, warning or advice")
	flags.DurationVar(&o.ExpiresWithin, "expires-within", 7*24*time.Hour, "report certificates that expire within this time")
	flags.BoolVar(&o.Probe, "probe", false, "send dry runs of requests, so that the API server calls the webhooks")
	flags.BoolVar(&o.Direct, "direct", false, "connect to Pods directly; this machine must be in the network of the cluster")
	flags.DurationVar(&o.Watch, "watch", 0, "read the metrics twice, this long apart, and count only the calls in between")
	flags.StringArrayVar(&o.AuditLogs, "audit-log", nil, "audit log of an API server, or - for standard input; can be repeated")
	flags.StringArrayVar(&o.Ignore, "ignore", nil, "leave out the findings of this check; can be repeated")
	_ = c.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"error", "warning", "advice"}, cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag does not exist
	_ = c.RegisterFlagCompletionFunc("ignore", func(*cobra.Command, []string, string) (ids []string, _ cobra.ShellCompDirective) {
		for _, check := range checks.Checks() {
			ids = append(ids, check.ID+"\t"+check.Title)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	})
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
