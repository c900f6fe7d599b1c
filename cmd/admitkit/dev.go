// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/dev"
	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newDev(s *screen.Screen) *cobra.Command {
	var o dev.Options
	var output string
	c := &cobra.Command{
		Use:   "dev [PACKAGE]",
		Short: "Run the hooks of this project behind a real API server, rebuilt on change",
		Long: `Run hooks behind a real API server on this machine, and tell of each of their
calls: who asked for what, what the hook answered, and its patch as a diff.

PACKAGE is a folder or an import path with hooks: exported variables of type
*webhook.Hook, functions that return one, or func Hooks() []*webhook.Hook. It is
./hooks where that exists, or else the current folder. When its source changes,
or that of a package of the module that it imports, the hooks are built anew and
take over. Calls that come meanwhile wait for them, within their timeout. If the
build fails, that is shown and the hooks from before go on. A registration that
has changed is registered anew.

The API server is found as "admitkit apiserver path" does, and built if it is
nowhere. It goes, with all objects, when dev ends: by Ctrl-C.

With --url, the hooks are those of a webhook in any language that runs already.

With --cluster, the hooks are registered in the cluster of your kubeconfig, which
calls this machine. So that this does no harm, failures are ignored (unless
--fail says otherwise), timeouts are 5 seconds at the most, kube-system is left
out, and the registrations have names of their own. They are removed at the end,
and those of a dev that was killed when it starts the next time.

-o json prints a JSON object a line: "event" is admission, ready, rebuilt,
buildFailed, crashed or applyFailed.`,
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
				return problem.New("-o %s: lines appear as things happen, on standard output only", output).Hint("admitkit dev -o %s >%s", form, file)
			default:
				return problem.New("-o %s: there are text and json", output)
			}
			return dev.Run(c.Context(), s, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "text", "form of the lines: text or json")
	f.StringArrayVar(&o.Apply, "apply", nil, "file or folder with objects to apply at the start; may be repeated")
	f.StringVar(&o.URL, "url", "", "where a webhook runs already, http or https")
	f.StringArrayVar(&o.Files, "webhook-configuration", nil, "file with the registration of the webhook at --url; may be repeated")
	f.StringVar(&o.CAFile, "ca-file", "", "file with the CA, in PEM, of the webhook at --url")
	f.StringArrayVar(&o.Flags, "flag", nil, "a flag for kube-apiserver, as NAME=VALUE; may be repeated")
	f.IntVar(&o.Port, "port", 0, "port of the API server (default any that is free)")
	f.BoolVar(&o.Cluster, "cluster", false, "register in the cluster of the kubeconfig")
	o.Where.Add(f)
	f.StringVar(&o.Advertise, "advertise", "", "with --cluster: HOST or HOST:PORT where the cluster reaches this machine (default its address towards the cluster)")
	f.BoolVar(&o.Fail, "fail", false, "with --cluster: keep the failurePolicy of the hooks, so that failures of this machine stop requests")
	f.BoolVarP(&o.Yes, "yes", "y", false, "with --cluster: do not ask")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}
