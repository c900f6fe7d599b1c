// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/lint"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	rules "github.com/admitkit/admitkit/pkg/lint"
)

func newLint(s *screen.Screen) *cobra.Command {
	var o lint.Options
	var list bool
	var explain string
	c := &cobra.Command{
		Use:     "lint [FILE|DIR|-]...",
		Short:   "Check webhook configurations against good practices",
		GroupID: "check",
		Long: `Check webhook configurations against good practices. lint finds configurations
that the API server rejects; webhooks that can lock up a cluster, that slow down
requests or that are never called; and serving certificates that do not match the
caBundle.

lint reads files, standard input, and folders with their subfolders (.yaml, .yml
and .json). With --cluster it reads the configurations of your kubeconfig's
cluster. In folders it skips kustomize patches and files without objects.

Give lint the Namespaces, Services and Deployments of the webhook too, so that it
finds more. lint reports only problems that it is sure of. If a problem depends on
the labels of a Namespace that lint has not read, lint does not report it.

To suppress a finding, give the reason in an annotation of the configuration:

  lint.admitkit.dev/ignore: "AK203=it guards kube-system on purpose"

AK203@policy.example.com suppresses the rule for one webhook only. Suppressions
can also be in a file, ` + lint.DefaultConfig + ` or the one that --config names:

  ignore:
  - rule: AK203
    object: ValidatingWebhookConfiguration/policy
    reason: it guards kube-system on purpose

For reinvocationPolicy IfNeeded, lint asks for a proof that the webhook is safe
to call again: the results of "admitkit verify -o json". Give the path of that
file, relative to the configuration file, in an annotation of the configuration:

  lint.admitkit.dev/proof: "sidecar.example.com=proof.json"

lint reads no proofs with --cluster or from standard input.

Exit codes:

  0  no finding of the --fail-on severity or worse
  1  at least one such finding
  2  the input could not be read, or the command failed`,
		Example: `
admitkit lint config/
kustomize build config/default | admitkit lint -

# all configurations of a cluster, with results for a code scanner
admitkit lint --cluster -o text -o sarif=lint.sarif

# compare the caBundle with the certificate that the webhook serves
kubectl -n shop port-forward service/hook 9443:443 &
admitkit lint --cluster --probe hook.example.com=127.0.0.1:9443
admitkit lint webhooks.yaml --serving-cert tls.crt

# explain one rule, and list all rules
admitkit lint --explain AK201
admitkit lint --rules`,
	}
	outputs := outputFlag(c, lint.Forms()...)
	flags := c.Flags()
	flags.BoolVar(&o.Cluster, "cluster", false, "read the configurations of a cluster instead of files")
	o.Flags.Add(flags)
	flags.StringVar(&o.Severity, "severity", "advice", "lowest severity to report: error, warning or advice")
	flags.StringVar(&o.FailOn, "fail-on", "warning", "lowest severity that makes the exit code 1: error, warning or advice")
	flags.StringVar(&o.Config, "config", "", "file with suppressions (default "+lint.DefaultConfig+" if it exists)")
	flags.StringArrayVar(&o.ServingCert, "serving-cert", nil, "file with the serving certificate, such as tls.crt; name the WEBHOOK if there are several; can be repeated")
	flags.StringArrayVar(&o.Probe, "probe", nil, "address at which lint reads the serving certificate; name the WEBHOOK if there are several; can be repeated")
	flags.DurationVar(&o.ExpiresWithin, "expires-within", 30*24*time.Hour, "report CA certificates that expire within this time")
	flags.StringVar(&o.Kubernetes, "kubernetes", "", "`VERSION` of the API server, such as 1.36; lint skips findings that concern only other versions (default the version of the cluster; without --cluster, all versions)")
	flags.BoolVar(&list, "rules", false, "list the rules")
	flags.StringVar(&explain, "explain", "", "explain the rule with this ID")
	for _, name := range []string{"severity", "fail-on"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{"error", "warning", "advice"}, cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag does not exist
	}
	_ = c.RegisterFlagCompletionFunc("explain", completeRules)
	c.MarkFlagsMutuallyExclusive("rules", "explain", "cluster")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := outputs.Check(s); err != nil {
			return err
		}
		o.Paths = args
		switch {
		case list:
			return outputs.Write(s, lint.WriteRules)
		case explain != "":
			rule, err := lint.Explain(explain)
			if err != nil {
				return err
			}
			return outputs.Write(s, func(form string, w io.Writer, p screen.Painter) error { return lint.WriteRule(rule, form, w, p) })
		case o.Cluster && len(args) > 0:
			return problem.New("lint: unexpected argument %q: --cluster reads no files", args[0]).Hint("%s --help", c.CommandPath())
		case !o.Cluster && len(args) == 0:
			return problem.New("lint: argument FILE is missing").Hint("admitkit lint config/, or admitkit lint --cluster")
		}
		report, err := lint.Run(c.Context(), s, o)
		if err != nil {
			return err
		}
		if err := outputs.Write(s, report.Write); err != nil {
			return err
		}
		if report.Failed() {
			return problem.ErrFound
		}
		return nil
	}
	return c
}

func completeRules(_ *cobra.Command, _ []string, typed string) (ids []string, _ cobra.ShellCompDirective) {
	for _, r := range rules.Rules() {
		if strings.HasPrefix(r.ID, strings.ToUpper(typed)) {
			ids = append(ids, r.ID+"\t"+r.Title)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
