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
		Use:     "explain {-f FILE|DIR|- | --traffic FILE|DIR} {--webhook-configuration FILE|DIR | --cluster}",
		Short:   "Explain which webhooks and policies apply to an object, and why",
		GroupID: "check",
		Long: `Explain which webhooks an API server would call for an object, in which order,
and why. If a webhook is called, explain shows the rule that matches. If not, it
shows the rule, selector or matchCondition that does not match. explain calls no
webhook and changes nothing in a cluster.

The webhooks come from files (--webhook-configuration), from a cluster
(--cluster), or from both. With both, a configuration in a file replaces the one
of the same name in the cluster, so you see the effect of applying the file. In
files, configurations named *.static.k8s.io are static manifests: the API server
reads them when it starts, and calls their webhooks first.

explain also evaluates admission policies (ValidatingAdmissionPolicy and
MutatingAdmissionPolicy) of the cluster and of the files, with their bindings and
parameters. It shows which of them apply, what they do, and which webhooks are
called for the changed object.

-f gives the objects to explain. In a folder, explain skips kustomize patches and
files without objects. Which object to give depends on the operation:

  CREATE, UPDATE  the new object
  DELETE          the stored object
  a subresource   the object that has the subresource, or the object that the
                  client sends; for pods/eviction, a Pod or an Eviction

Without --cluster, explain reads custom kinds from CustomResourceDefinitions, and
namespace labels from Namespaces or --namespace-labels. If a Namespace is missing,
only its label kubernetes.io/metadata.name is known. With --cluster, explain reads
kinds and Namespaces from the cluster.

--traffic explains the requests in recordings of "admitkit record": which of them
a changed selector, rule or matchCondition would reach, and which would be lost.
explain compares with the webhooks that received the calls, or with the
configurations of --against. -f then gives Namespaces and CustomResourceDefinitions.

explain assumes that each webhook allows the request and does not change the
object. It does not guess. The answer is "unknown" for:

  - selectors on namespace labels that are not known
  - conditions that use the authorizer, unless --allow gives the permissions.
    With --cluster, explain asks the cluster, if you are allowed to create
    SubjectAccessReviews
  - conditions on the uid or the extra fields of the user, unless --user-uid and
    --user-extra give them
  - conditions on fields that the API server's own admission plugins set
  - policies whose bindings or parameters are not known, and policies that read
    one of the facts above

Exit codes:

  0  for every webhook, explain knows whether it is called, and for every policy,
     what it does; also if a policy denies the object
  1  a webhook that --expect-called names is not called, or a webhook that
     --expect-not-called names is called
  2  the answer for a webhook or a policy is unknown, or the command failed

With --webhook, --expect-called or --expect-not-called, the exit code depends only
on the webhooks that these flags name.

With --traffic, the exit codes are:

  0  nothing changes
  1  a webhook loses or gains calls, or a request is rejected now
  2  it is unknown for a call whether a webhook is called; or nothing changes, but
     parts of the recordings could not be read; or the command failed`,
		Example: `
# the webhooks of the current cluster that are called for a manifest
admitkit explain -f pod.yaml --cluster

# the effect of applying a configuration
admitkit explain -f pod.yaml --cluster --webhook-configuration new.yaml

# from files only, for another user, with details of one webhook
admitkit explain -f manifests/ --webhook-configuration webhooks/ \
  --user system:serviceaccount:shop:ci --webhook policy.example.com

# the webhooks that can prevent the deletion or eviction of a Pod
kubectl -n shop get pod web -o yaml | admitkit explain -f - --cluster --operation DELETE
kubectl -n shop get pod web -o yaml | admitkit explain -f - --cluster --subresource eviction

# yesterday's requests that a changed configuration would lose or gain
admitkit explain --traffic recordings/ --against old.yaml --webhook-configuration new.yaml -f namespaces.yaml

# in CI: fail unless the injector is called for this Pod
admitkit explain -f pod.yaml --webhook-configuration webhooks/ --expect-called inject.example.com`,
		Args: arguments(),
	}
	outputs := outputFlag(c, "text", "json")
	f := c.Flags()
	f.StringArrayVarP(&o.Files, "filename", "f", nil, "file or folder with objects, or - for standard input; can be repeated")
	f.StringArrayVarP(&o.Configurations, "webhook-configuration", "w", nil, "file or folder with webhook configurations, admission policies, bindings and parameters, or - for standard input; can be repeated")
	f.BoolVar(&o.Cluster, "cluster", false, "read the webhook configurations of a cluster")
	o.Where.Add(f)
	f.StringVar(&o.Operation, "operation", "", "CREATE, UPDATE, DELETE or CONNECT (default CREATE, or the operation of the subresource)")
	_ = c.RegisterFlagCompletionFunc("operation", cobra.FixedCompletions([]string{"CREATE", "UPDATE", "DELETE", "CONNECT"}, cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag does not exist
	f.StringVar(&o.SubResource, "subresource", "", "subresource of the request, such as status, scale, eviction or exec")
	f.StringArrayVar(&o.OldFiles, "old", nil, "file with the stored objects, for UPDATE (default the objects in the cluster; without --cluster, copies of the new objects)")
	f.BoolVar(&o.DryRun, "dry-run", false, "the request is a dry run")
	f.StringVarP(&o.Namespace, "namespace", "n", "", "namespace of objects without a namespace (default \"default\")")
	f.StringVar(&o.Name, "name", "", "name of the object that has the subresource, if -f does not name it, as with PodExecOptions")
	namespaceLabels := f.String("namespace-labels", "", "labels of the namespace, such as team=web,env=prod, instead of those of its Namespace; \"\" means no labels")
	f.StringVar(&o.Resource, "resource", "", "resource of the objects, as RESOURCE.VERSION.GROUP, for a Scale or a kind without a CustomResourceDefinition")
	f.StringVar(&o.User, "user", "", "user who sends the request (default with --cluster the user of the kubeconfig, otherwise admin in system:masters)")
	f.StringArrayVar(&o.Groups, "group", nil, "group of the user; can be repeated")
	uid := f.String("user-uid", "", "uid of the user (default unknown)")
	f.StringArrayVar(&o.Extra, "user-extra", nil, "extra field of the user as KEY=VALUE (default unknown); can be repeated")
	f.StringArrayVar(&o.Allow, "allow", nil, "permission for conditions that use the authorizer, such as get:deployments.apps@shop or get:/metrics; all others are denied; can be repeated")
	f.StringArrayVar(&o.Traffic, "traffic", nil, "recording whose requests to explain, or folder of recordings; can be repeated")
	f.StringArrayVar(&o.Against, "against", nil, "file or folder with the webhook configurations to compare with (default the webhooks that were called in the recordings); can be repeated")
	f.StringVar(&o.Kubernetes, "kubernetes", "", "version of the API server (default the version of the cluster; without --cluster, 1.36)")
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
		if len(o.Traffic) > 0 {
			return explainTraffic(c, &o, s, outputs)
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

// requestFlags describe the request for an object of -f. Recordings have whole requests.
var requestFlags = []string{"operation", "subresource", "old", "dry-run", "namespace", "name", "resource", "user", "group", "user-uid", "user-extra",
	"expect-called", "expect-not-called"}

// explainTraffic explains the requests of recordings.
func explainTraffic(c *cobra.Command, o *explain.Options, s *screen.Screen, outputs *screen.Outputs) error {
	for _, name := range requestFlags {
		if err := exclusive(c, [][]string{{"traffic", name}}); err != nil {
			return err
		}
	}
	report, err := explain.RunTraffic(c.Context(), o, s)
	if err != nil {
		return err
	}
	err = outputs.Write(s, func(form string, w io.Writer, p screen.Painter) error {
		if form == "json" {
			return report.JSON(w)
		}
		return report.Text(w, p)
	})
	if err != nil {
		return err
	}
	return report.Verdict()
}
