// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/lint"
	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
	rules "github.com/admitkit/admitkit/pkg/lint"
)

func newLint(s *screen.Screen) *cobra.Command {
	var o lint.Options
	var list bool
	var explain string
	c := &cobra.Command{
		Use:     "lint [FILE|DIR|-]...",
		Short:   "Hold webhook configurations against the good practices",
		GroupID: "judge",
		Long: `Hold webhook configurations against the good practices: what the API server
refuses, what locks a cluster out of itself, what is called too often, too long
or not at all, and certificates that do not fit.

It reads files, folders (.yaml, .yml and .json, and those below) and standard
input; with --cluster, the configurations of the current kubeconfig's cluster.
The more it sees, the more exact it is: give it the Namespaces, Services and
Deployments of the webhook too. What it cannot know it does not report: a label
that nobody showed it may be there or not. Of a folder, files without objects
and patches of kustomize are left out.

A finding that is meant to be is suppressed with a reason, by an annotation of
the configuration,

  lint.admitkit.dev/ignore: "AK203=it guards kube-system on purpose"

where AK203@policy.example.com is about one webhook, or in a file
(` + lint.DefaultConfig + ` if there is one, or --config):

  ignore:
  - rule: AK203
    object: ValidatingWebhookConfiguration/policy
    reason: it guards kube-system on purpose

reinvocationPolicy IfNeeded wants a proof: results of "admitkit verify -o json"
in the annotation lint.admitkit.dev/proof: "sidecar.example.com=proof.json", a
file beside the configuration's. None is read for --cluster and standard input.

Exit codes: 0 nothing of --fail-on or worse was found, 1 something was, 2 it
could not be told.`,
		Example: `
admitkit lint config/
kustomize build config/default | admitkit lint -

# all that is in a cluster, with results for a code scanner
admitkit lint --cluster -o text -o sarif=lint.sarif

# does the certificate that is served fit?
kubectl -n shop port-forward service/hook 9443:443 &
admitkit lint --cluster --probe hook.example.com=127.0.0.1:9443
admitkit lint webhooks.yaml --serving-cert tls.crt

# what a rule is about, and all of them
admitkit lint --explain AK201
admitkit lint --rules`,
	}
	outputs := outputFlag(c, lint.Forms()...)
	flags := c.Flags()
	flags.BoolVar(&o.Cluster, "cluster", false, "read from the cluster instead of files")
	o.Flags.Add(flags)
	flags.StringVar(&o.Severity, "severity", "advice", "the least severity that is shown and counts: error, warning or advice")
	flags.StringVar(&o.FailOn, "fail-on", "warning", "the least severity that makes the exit code 1: error, warning or advice")
	flags.StringVar(&o.Config, "config", "", "file with suppressions (default "+lint.DefaultConfig+", if it is there)")
	flags.StringArrayVar(&o.ServingCert, "serving-cert", nil, "[WEBHOOK=]FILE with the certificate that is served, as in tls.crt; may be repeated")
	flags.StringArrayVar(&o.Probe, "probe", nil, "[WEBHOOK=]HOST:PORT where to see which certificate is served; may be repeated")
	flags.DurationVar(&o.ExpiresWithin, "expires-within", 30*24*time.Hour, "report CA certificates that expire so soon")
	flags.StringVar(&o.Kubernetes, "kubernetes-version", "", "leave aside what only API servers of other versions do (default that of the cluster, or all)")
	flags.BoolVar(&list, "rules", false, "list the rules")
	flags.StringVar(&explain, "explain", "", "say all about a rule, by its ID")
	for _, name := range []string{"severity", "fail-on"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{"error", "warning", "advice"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
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
			return problem.New("--cluster reads no files: %s is one argument too many", args[0]).Hint("%s --help", c.CommandPath())
		case !o.Cluster && len(args) == 0:
			return problem.New("%s: FILE is missing", below(c)).Hint("admitkit lint config/, or admitkit lint --cluster")
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
