// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/dev"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

func newDev(s *screen.Screen) *cobra.Command {
	var o dev.Options
	var output string
	c := &cobra.Command{
		Use:   "dev [PACKAGE]",
		Short: "Run hooks behind a real API server, and rebuild them on change",
		Long: `Run hooks behind a real API server on this machine, and print each call: the
user, the request, the hook's response and its patch as a diff.

PACKAGE is a folder or an import path with hooks: exported variables of type
*webhook.Hook, exported functions without parameters that return a
*webhook.Hook, or a function Hooks like the one that "admitkit init" generates.
The default is ./hooks if that folder exists, and otherwise the current folder.
dev passes its environment variables on to the hooks.

dev rebuilds and restarts the hooks when a source file changes, in PACKAGE or in a
package of the same module that PACKAGE imports. Calls during a build wait for the new
hooks, up to their timeout. If the build fails, dev prints the errors and keeps
the previous hooks running. If the registration of a hook has changed, dev
applies it again.

dev uses the API server that "admitkit apiserver path" finds, and builds one if
there is none. Ctrl-C ends dev, stops the API server and deletes its objects.

With --url, dev registers a webhook that is already running, in any language.

With --cluster, dev registers the hooks in the cluster of your kubeconfig, and
the cluster calls this machine. To keep the cluster working, dev changes the
registrations:

  - failurePolicy is Ignore; with --fail, it stays as the hooks set it
  - timeouts are at most 5 seconds
  - kube-system is excluded
  - names differ from those of the deployed hooks

dev deletes the registrations when it ends. If dev was killed, its next run
deletes them.

-o json prints one JSON object per line. Its "event" is admission, ready,
rebuilt, buildFailed, crashed or applyFailed.`,
		Example: `
admitkit dev
admitkit dev ./internal/webhooks --apply config/crd --apply samples/
admitkit dev -o json | jq 'select(.outcome == "denied")'
admitkit dev --url https://localhost:9443 --ca-file ca.crt --webhook-configuration webhooks.yaml
admitkit dev --cluster --context staging --advertise 192.0.2.7:9443`,
		GroupID: "write",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return arguments("PACKAGE")(c, args)
			}
			if len(args) == 1 {
				o.Package = args[0]
			}
			form, file, toFile := strings.Cut(output, "=")
			switch {
			case output == "text":
			case output == "json":
				o.JSON = true
			case toFile:
				return problem.New("-o %s: dev prints to standard output only", output).Hint("admitkit dev -o %s >%s", form, file)
			default:
				return problem.New("-o %s is not supported: use text or json", output)
			}
			return dev.Run(c.Context(), s, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "text", "output format: text or json")
	f.StringArrayVar(&o.Apply, "apply", nil, "file or folder of objects to create or update in the API server when dev starts; can be repeated")
	f.StringVarP(&o.Namespace, "namespace", "n", "", "namespace that hooks get as deps.Namespace; dev creates it in its own API server (default \"default\")")
	f.StringVar(&o.URL, "url", "", "http or https URL of a webhook that is already running")
	f.StringArrayVar(&o.Files, "webhook-configuration", nil, "file with the webhook configuration for --url; can be repeated")
	f.StringVar(&o.CAFile, "ca-file", "", "PEM file with the CA certificates of the webhook at --url")
	f.StringArrayVar(&o.Flags, "flag", nil, "flag for kube-apiserver, as NAME=VALUE; can be repeated")
	f.IntVar(&o.Port, "port", 0, "port of the API server (default a free port)")
	f.BoolVar(&o.Cluster, "cluster", false, "register the hooks in the cluster of the kubeconfig")
	o.Where.Add(f)
	f.StringVar(&o.Advertise, "advertise", "", "with --cluster: address at which the API server can reach this machine (default the local address of the connection to the cluster)")
	f.BoolVar(&o.Fail, "fail", false, "with --cluster: keep the failurePolicy of the hooks; with Fail, requests in the cluster fail if this machine does not answer")
	f.BoolVarP(&o.Yes, "yes", "y", false, "with --cluster: do not ask for confirmation")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag does not exist
	return c
}
