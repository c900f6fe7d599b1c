// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/cli/manifests"
	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newManifests(s *screen.Screen) *cobra.Command {
	o := &manifests.Options{}
	var dir string
	var outputs *screen.Outputs
	c := &cobra.Command{
		Use:   "manifests [PACKAGE]",
		Short: "Print the configuration objects of hooks",
		Long: `Print the objects that register the hooks of a Go package with an API server:
a MutatingWebhookConfiguration, a ValidatingWebhookConfiguration, or both.

PACKAGE is a folder or an import path; ./hooks if there is such a folder, or
else the working directory. Its hooks are what its function Hooks returns,

  func Hooks() []*webhook.Hook

(an error as second result is fine), or else its exported variables of type
*webhook.Hook and its exported functions without parameters that return one.
They are built with the go command; nothing is written into their folder.

Every field is written out: an unset failurePolicy is Fail, matchPolicy is
Equivalent, timeoutSeconds 5, sideEffects None, and the namespaceSelector
leaves out kube-system and the namespace of the webhook itself.

In a project of "admitkit init", --service and --cert-manager are by default
what its own program has. Its "make manifests" writes what its deployment needs:
these objects with cert-manager, and otherwise only the rights, since the program
registers the hooks itself.

--form chooses the kind of API server:

  v1       all since Kubernetes 1.16
  v1beta1  those before 1.22; matchConditions are refused
  static   files that the API server reads as it starts (manifest-based
           admission: 1.36 with its feature gate, or later), with the
           AdmissionConfiguration that names them: by URL only

Exit codes: 0 the objects are written, 2 they are not.`,
		Example: `
admitkit manifests | admitkit lint -
admitkit manifests --service shop/webhook --cert-manager shop/webhook-tls
admitkit manifests ./hooks --service shop/webhook:8443 --ca-file ca.crt --dir deploy
admitkit manifests --url https://hooks.example.com --name shop | kubectl apply --server-side -f -
admitkit manifests --form v1beta1 --service shop/webhook -o json
admitkit manifests --form static --url https://127.0.0.1:9443 --name shop --ca-file ca.crt --dir admission`,
		GroupID: "write",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return arguments("PACKAGE")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			pkg := gohooks.Default()
			if len(args) > 0 {
				pkg = args[0]
			}
			form := outputs.String()
			if dir != "" && form != "yaml" && form != "json" {
				return problem.New("--dir and -o %s: there are two places to write to", form).Hint("--dir DIR -o json")
			}
			if err := outputs.Check(s); err != nil {
				return err
			}
			taken, err := o.Complete(folderOf(pkg))
			if err != nil {
				return err
			}
			if _, err := o.Configuration(); err != nil { // before the hooks are built
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
				s.Note("as in the project: %s", taken)
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
	f.StringVar(&o.Form, "form", manifests.V1, "v1, v1beta1 or static")
	f.StringVar(&o.Name, "name", "", "metadata.name of the objects (default that of the service)")
	f.StringVar(&o.Service, "service", "", "`NAMESPACE/NAME[:PORT]` of the Service in front of the hooks")
	f.StringVar(&o.URL, "url", "", "`URL` where the hooks are, if there is no Service: https://HOST[:PORT][/PATH]")
	f.StringVar(&o.CAFile, "ca-file", "", "`FILE` with the CA certificates in PEM for the caBundle")
	f.StringVar(&o.CertManager, "cert-manager", "", "`NAMESPACE/CERTIFICATE` from which cert-manager fills in the caBundle")
	f.StringVar(&o.Namespace, "namespace", "", "namespace that the hooks run in, which the namespaceSelector leaves out (default that of the service)")
	f.StringArrayVar(&o.Labels, "label", nil, "`KEY=VALUE` for the objects; may be repeated")
	f.StringArrayVar(&o.Annotations, "annotation", nil, "`KEY=VALUE` for the objects; may be repeated")
	f.StringVar(&dir, "dir", "", "write one file for each object into `DIR`, all of them or none, in place of standard output")
	f.StringVar(&o.ServerDir, "server-dir", "/etc/kubernetes/admission", "where the API server will find what is in DIR, for --form static")
	_ = c.RegisterFlagCompletionFunc("form", cobra.FixedCompletions(manifests.Forms(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	_ = c.MarkFlagDirname("dir")
	return c
}

// folderOf is where a package is, or may be.
func folderOf(pkg string) string {
	if info, err := os.Stat(pkg); err == nil && info.IsDir() {
		return pkg
	}
	return "." // of an import path
}

func writeManifests(s *screen.Screen, set *manifests.Set, dir, form string) error {
	written, left, err := set.WriteDir(dir, form)
	if err != nil {
		return err
	}
	for _, name := range written {
		s.Note("wrote %s", name)
	}
	for _, name := range left {
		s.Note("%s is from before, and no hook is in it any more: remove it", name)
	}
	return nil
}
