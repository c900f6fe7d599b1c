// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/explain"
	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newExplain(s *screen.Screen) *cobra.Command {
	var o explain.Options
	c := &cobra.Command{
		Use:     "explain -f FILE|DIR|- {--webhook-configuration FILE|DIR | --cluster}",
		Short:   "Tell which webhooks would be called for an object, and why",
		GroupID: "judge",
		Long: `Tell which webhooks an API server would call for an object, in which order, and
why: the rule that matches, or the selector or matchCondition that does not,
with its value. No webhook is called, and nothing in a cluster is changed.

The webhooks are those of files (--webhook-configuration), of a cluster
(--cluster), or of both: then those of the files take the place of those of the
same name in the cluster, which shows what applying them would do. In files,
configurations named *.static.k8s.io are static manifests, which come first.

Each object of -f is told of. Of folders, files without objects and patches of
kustomize are left out. For CREATE and UPDATE it is the new object, for DELETE
the stored one. Subresources take the object itself or what is sent to them: a
Pod, or an Eviction, for pods/eviction.

Without --cluster nothing is known but what the files and flags say: kinds by
their CustomResourceDefinitions, labels of a namespace by its Namespace or
--namespace-labels. Of any other namespace the name is known, and with it the
label kubernetes.io/metadata.name, but no other. With --cluster both are looked
up.

What is told holds for the object as it is, as if each webhook allowed the
request and changed nothing. What cannot be told is said to be unknown, never
guessed: selectors for labels of a namespace that are not known, conditions that
ask the authorizer (give --allow, or --cluster if you may create
SubjectAccessReviews), conditions on the uid and the extra fields of a user
(give --user-uid and --user-extra), conditions on what the API server's own
plugins set.

Exit codes: 0 everything was told, 1 --expect-called or --expect-not-called does
not hold, 2 something could not be told. With expectations, or with --webhook,
only the webhooks that they name count.`,
		Example: `
# what a manifest meets in the current cluster
admitkit explain -f pod.yaml --cluster

# what changes if a configuration is applied
admitkit explain -f pod.yaml --cluster --webhook-configuration new.yaml

# all from files, as another user, with one webhook in detail
admitkit explain -f manifests/ --webhook-configuration webhooks/ \
  --user system:serviceaccount:shop:ci --webhook policy.example.com

# which webhooks can keep a Pod from being deleted, or evicted
kubectl -n shop get pod web -o yaml | admitkit explain -f - --cluster --operation DELETE
kubectl -n shop get pod web -o yaml | admitkit explain -f - --cluster --subresource eviction

# in CI: the injector has to be asked about this Pod
admitkit explain -f pod.yaml --webhook-configuration webhooks/ --expect-called inject.example.com`,
		Args: arguments(),
	}
	outputs := outputFlag(c, "text", "json")
	f := c.Flags()
	f.StringArrayVarP(&o.Files, "filename", "f", nil, "objects to tell of: files, folders, or - for standard input; may be repeated")
	f.StringArrayVarP(&o.Configurations, "webhook-configuration", "w", nil, "webhook configurations: files, folders, or -; may be repeated")
	f.BoolVar(&o.Cluster, "cluster", false, "take the webhook configurations of the cluster")
	o.Where.Add(f)
	f.StringVar(&o.Operation, "operation", "", "CREATE, UPDATE, DELETE or CONNECT (default CREATE, or what the subresource has)")
	_ = c.RegisterFlagCompletionFunc("operation", cobra.FixedCompletions([]string{"CREATE", "UPDATE", "DELETE", "CONNECT"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	f.StringVar(&o.SubResource, "subresource", "", "such as status, scale, eviction, exec")
	f.StringArrayVar(&o.OldFiles, "old", nil, "the objects as they are stored, for UPDATE (default those of the cluster, else the same as the new ones)")
	f.BoolVar(&o.DryRun, "dry-run", false, "the request is a dry run")
	f.StringVarP(&o.Namespace, "namespace", "n", "", "namespace of objects that name none (default \"default\")")
	f.StringVar(&o.Name, "name", "", "name of the object that options such as PodExecOptions are for")
	namespaceLabels := f.String("namespace-labels", "", "labels of the namespace, as in team=web,env=prod, or \"\" for none, instead of those of its Namespace")
	f.StringVar(&o.Resource, "resource", "", "RESOURCE.VERSION.GROUP of a kind without a CustomResourceDefinition, or of a Scale")
	f.StringVar(&o.User, "user", "", "who makes the request (default you in a cluster, else admin in system:masters)")
	f.StringArrayVar(&o.Groups, "group", nil, "group of the user; may be repeated")
	uid := f.String("user-uid", "", "uid of the user, for conditions on it (default not known)")
	f.StringArrayVar(&o.Extra, "user-extra", nil, "extra field of the user as KEY=VALUE, for conditions on them (default not known); may be repeated")
	f.StringArrayVar(&o.Allow, "allow", nil, "what the user may do, as VERB:RESOURCE[.GROUP][/SUBRESOURCE][@NAMESPACE[/NAME]] or VERB:/PATH; all else they may not; may be repeated")
	f.StringVar(&o.Kubernetes, "kubernetes", "", "version of the API server (default that of the cluster, else 1.36)")
	f.StringVar(&o.Webhook, "webhook", "", "tell of this webhook only, with all that it depends on")
	f.StringArrayVar(&o.Expected, "expect-called", nil, "exit with 1 unless this webhook is called for every object; may be repeated")
	f.StringArrayVar(&o.NotExpected, "expect-not-called", nil, "exit with 1 if this webhook is called for an object; may be repeated")
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
