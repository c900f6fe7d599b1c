// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/explain"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

func newExplain(s *screen.Screen) *cobra.Command {
	var o explain.Options
	c := &cobra.Command{
		Use:     "explain -f FILE|DIR|- {--webhook-configuration FILE|DIR | --cluster}",
		Short:   "Explain which webhooks are called for an object, and why",
		GroupID: "check",
		Long: `Explain which webhooks an API server would call for an object, in which order,
and why. For each webhook, explain shows the rule that matches, or the selector
or matchCondition that does not match, with its value. explain calls no webhook
and changes nothing in a cluster.

The webhooks come from files (--webhook-configuration), from a cluster
(--cluster), or from both. With both, a configuration in a file replaces the one
of the same name in the cluster; this shows the effect of applying the file. In
files, configurations named *.static.k8s.io are static manifests. The API server
calls the webhooks of static manifests first.

explain reports on each object of -f. In folders it skips files without objects
and kustomize patches. For CREATE and UPDATE, -f is the new object; for DELETE,
the stored object. For a subresource, -f is the object itself or the object that
is sent to the subresource: a Pod or an Eviction for pods/eviction.

Without --cluster, explain knows only the files and flags. It takes kinds from
CustomResourceDefinitions, and the labels of a namespace from its Namespace or
from --namespace-labels. Of another namespace it knows only the label
kubernetes.io/metadata.name. With --cluster it reads both from the cluster.

explain assumes that each webhook allows the request and does not change the
object. It never guesses. It reports "unknown" for:

  - selectors on namespace labels that it does not know
  - conditions that use the authorizer, unless you give --allow, or --cluster
    and you may create SubjectAccessReviews
  - conditions on the uid or extra fields of the user, unless you give
    --user-uid or --user-extra
  - conditions on fields that the API server's own plugins set

Exit codes:

  0  explain has an answer for every webhook
  1  --expect-called or --expect-not-called fails
  2  explain has no answer for a webhook, or the command failed

With --webhook, --expect-called or --expect-not-called, only the webhooks that
they name count.`,
		Example: `
# the webhooks of the current cluster that a manifest would meet
admitkit explain -f pod.yaml --cluster

# the effect of applying a configuration
admitkit explain -f pod.yaml --cluster --webhook-configuration new.yaml

# from files only, for another user, with details of one webhook
admitkit explain -f manifests/ --webhook-configuration webhooks/ \
  --user system:serviceaccount:shop:ci --webhook policy.example.com

# the webhooks that can prevent the deletion or eviction of a Pod
kubectl -n shop get pod web -o yaml | admitkit explain -f - --cluster --operation DELETE
kubectl -n shop get pod web -o yaml | admitkit explain -f - --cluster --subresource eviction

# in CI: fail unless the injector is called for this Pod
admitkit explain -f pod.yaml --webhook-configuration webhooks/ --expect-called inject.example.com`,
		Args: arguments(),
	}
	outputs := outputFlag(c, "text", "json")
	f := c.Flags()
	f.StringArrayVarP(&o.Files, "filename", "f", nil, "file or folder with objects, or - for standard input; can be repeated")
	f.StringArrayVarP(&o.Configurations, "webhook-configuration", "w", nil, "file or folder with webhook configurations, or - for standard input; can be repeated")
	f.BoolVar(&o.Cluster, "cluster", false, "read the webhook configurations of a cluster")
	o.Where.Add(f)
	f.StringVar(&o.Operation, "operation", "", "CREATE, UPDATE, DELETE or CONNECT (default CREATE, or the operation of the subresource)")
	_ = c.RegisterFlagCompletionFunc("operation", cobra.FixedCompletions([]string{"CREATE", "UPDATE", "DELETE", "CONNECT"}, cobra.ShellCompDirectiveNoFileComp)) // it fails only without the flag
	f.StringVar(&o.SubResource, "subresource", "", "subresource of the request, such as status, scale, eviction or exec")
	f.StringArrayVar(&o.OldFiles, "old", nil, "file with the stored objects, for UPDATE (default the objects of the cluster, else copies of the new ones)")
	f.BoolVar(&o.DryRun, "dry-run", false, "the request is a dry run")
	f.StringVarP(&o.Namespace, "namespace", "n", "", "namespace of objects without a namespace (default \"default\")")
	f.StringVar(&o.Name, "name", "", "name of the object to which options such as PodExecOptions apply")
	namespaceLabels := f.String("namespace-labels", "", "labels of the namespace, as in team=web,env=prod, instead of those of its Namespace; \"\" is no labels")
	f.StringVar(&o.Resource, "resource", "", "RESOURCE.VERSION.GROUP of a kind without a CustomResourceDefinition, or of a Scale")
	f.StringVar(&o.User, "user", "", "user of the request (default you with --cluster, else admin in system:masters)")
	f.StringArrayVar(&o.Groups, "group", nil, "group of the user; can be repeated")
	uid := f.String("user-uid", "", "uid of the user (default unknown)")
	f.StringArrayVar(&o.Extra, "user-extra", nil, "extra field of the user as KEY=VALUE (default unknown); can be repeated")
	f.StringArrayVar(&o.Allow, "allow", nil, "permission of the user, as VERB:RESOURCE[.GROUP][/SUBRESOURCE][@NAMESPACE[/NAME]] or VERB:/PATH; with it, all other requests are denied; can be repeated")
	f.StringVar(&o.Kubernetes, "kubernetes", "", "version of the API server (default that of the cluster, else 1.36)")
	f.StringVar(&o.Webhook, "webhook", "", "report on this webhook only, in detail")
	f.StringArrayVar(&o.Expected, "expect-called", nil, "exit with 1 unless this webhook is called for every object; can be repeated")
	f.StringArrayVar(&o.NotExpected, "expect-not-called", nil, "exit with 1 if this webhook is called for any object; can be repeated")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := outputs.Check(s); err != nil {
			return err
		}
		if f.Changed("user-uid") {
			o.UID = uid
		}
		if f.Changed("namespace-labels") {
			o.NamespaceLabels = namespaceLabels
		}
		report, err := explain.Run(c.Context(), &o, s)
		if err != nil {
			return err
		}
		err = outputs.Write(s, func(form string, w io.Writer, p screen.Painter) error {
			if form == "json" {
				return report.JSON(w)
			}
			return report.Text(w, p, o.Webhook)
		})
		if err != nil {
			return err
		}
		if err = o.Verdict(report); errors.Is(err, problem.ErrFound) {
			s.Problem(err)
		}
		return err
	}
	return c
}
