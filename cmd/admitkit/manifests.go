// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/cli/manifests"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

func newManifests(s *screen.Screen) *cobra.Command {
	o := &manifests.Options{}
	var dir string
	var outputs *screen.Outputs
	c := &cobra.Command{
		Use:   "manifests [PACKAGE]",
		Short: "Print the webhook configurations of hooks",
		Long: `Print the objects that register the hooks of a Go package with an API server:
a MutatingWebhookConfiguration, a ValidatingWebhookConfiguration, or both.

PACKAGE is a folder or an import path. The default is ./hooks if that folder
exists, and otherwise the current folder. The hooks are the result of this
function, which can also return an error:

  func Hooks() []*webhook.Hook

The function may have the parameters (context.Context, *program.Deps). Even then,
the command needs no cluster. Without the function, the hooks are the exported
variables of type *webhook.Hook, and the results of exported functions without
parameters that return a *webhook.Hook. The go command builds the package; nothing is
written into its folder.

The output sets every field. For fields that a hook leaves unset, it has these
defaults: failurePolicy Fail, matchPolicy Equivalent, timeoutSeconds 5,
sideEffects None, and a namespaceSelector that excludes kube-system and the
namespace of the webhook.

In a project that "admitkit init" generated, the defaults of --service and
--cert-manager come from the project. "make manifests" in the project writes the
manifests to deploy it. With cert-manager, they include the webhook configurations.
Without it, they include RBAC rules instead, because the program registers its own
hooks.

--form selects the API servers that can use the output:

  v1       Kubernetes 1.16 and later
  v1beta1  Kubernetes before 1.22; without --kubernetes, the command fails if a hook
           has matchConditions
  static   files that the API server reads when it starts (manifest-based
           admission control, from Kubernetes 1.37, or 1.36 with its feature gate), and
           the AdmissionConfiguration that names them; needs --url

Exit codes:

  0  all objects were written
  2  nothing was written`,
		Example: `
admitkit manifests | admitkit lint -
admitkit manifests --service shop/webhook --cert-manager shop/webhook-tls
admitkit manifests ./hooks --service shop/webhook:8443 --ca-file ca.crt --dir deploy
admitkit manifests --url https://hooks.example.com --name shop | kubectl apply --server-side -f -
admitkit manifests --kubernetes 1.20 --service shop/webhook -o json
admitkit manifests --form static --url https://127.0.0.1:9443 --name shop --ca-file ca.crt --dir admission`,
		GroupID: "write",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return arguments("PACKAGE")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			pkg := gohooks.Default(".")
			if len(args) > 0 {
				pkg = args[0]
			}
			form := outputs.String()
			if dir != "" && form != "yaml" && form != "json" {
				return problem.New("-o %s cannot be used with --dir: use -o yaml or -o json", form).Hint("--dir DIR -o json")
			}
			if err := outputs.Check(s); err != nil {
				return err
			}
			taken, err := o.Complete(folderOf(pkg))
			if err != nil {
				return err
			}
			if _, err := o.Configuration(); err != nil { // checked first, because the build takes long
				return err
			}
			p, err := gohooks.BuildOn(c.Context(), s, pkg)
			if err != nil {
				return err
			}
			defer p.Close()
			set, err := manifests.Make(c.Context(), p, o)
			if err != nil {
				return err
			}
			if taken != "" {
				s.Note("defaults from the project: %s", taken)
			}
			for _, note := range set.Notes {
				s.Note("%s", note)
			}
			if dir != "" {
				return writeManifests(s, set, dir, form)
			}
			return outputs.Write(s, func(form string, w io.Writer, _ screen.Painter) error {
				text, err := set.Write(form)
				if err != nil {
					return err
				}
				_, err = w.Write(text)
				return err
			})
		},
	}
	outputs = outputFlag(c, "yaml", "json")
	f := c.Flags()
	f.StringVar(&o.Form, "form", "", "API version of the objects: v1 or v1beta1; static: files for manifest-based admission control (default v1; with --kubernetes before 1.16, v1beta1)")
	f.StringVar(&o.Kubernetes, "kubernetes", "", "`VERSION` of the API server, such as 1.36: the objects have only the fields that it knows, and notes say what is lost (default the newest)")
	f.StringVar(&o.Name, "name", "", "metadata.name of the objects (default the name of the Service)")
	f.StringVar(&o.Service, "service", "", "Service in front of the hooks, as `NAMESPACE/NAME[:PORT]`")
	f.StringVar(&o.URL, "url", "", "`URL` of the hooks, if there is no Service: https://HOST[:PORT][/PATH]")
	f.StringVar(&o.CAFile, "ca-file", "", "`FILE` with the CA certificates for the caBundle, as PEM")
	f.StringVar(&o.CertManager, "cert-manager", "", "cert-manager Certificate that provides the caBundle, as `NAMESPACE/CERTIFICATE`")
	f.StringVar(&o.Namespace, "namespace", "", "namespace of the hooks, which the namespaceSelector excludes (default the namespace of the Service)")
	f.StringArrayVar(&o.Labels, "label", nil, "label for the objects, as `KEY=VALUE`; can be repeated")
	f.StringArrayVar(&o.Annotations, "annotation", nil, "annotation for the objects, as `KEY=VALUE`; can be repeated")
	f.StringVar(&dir, "dir", "", "write one file per object into `DIR` instead of standard output; if one cannot be written, none is")
	f.StringVar(&o.ServerDir, "server-dir", "/etc/kubernetes/admission", "with --form static: folder to which you copy the files on the API server's machine")
	_ = c.RegisterFlagCompletionFunc("form", cobra.FixedCompletions(manifests.Forms(), cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag does not exist
	_ = c.MarkFlagDirname("dir")
	return c
}

// folderOf returns pkg if it is the path of a folder. Otherwise pkg is an import path, and folderOf returns the working
// directory.
func folderOf(pkg string) string {
	if info, err := os.Stat(pkg); err == nil && info.IsDir() {
		return pkg
	}
	return "."
}

func writeManifests(s *screen.Screen, set *manifests.Set, dir, form string) error {
	written, stale, err := set.WriteDir(dir, form)
	if err != nil {
		return err
	}
	for _, name := range written {
		s.Note("wrote %s", name)
	}
	for _, name := range stale {
		s.Note("%s is left over from an earlier run, and no current hook needs it: delete it", name)
	}
	return nil
}
