// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/scaffold"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newInit(s *screen.Screen) *cobra.Command {
	var o scaffold.Options
	var kinds bool
	c := &cobra.Command{
		Use:     "init NAME",
		Short:   "Scaffold a webhook project that builds, tests and deploys",
		GroupID: "write",
		Long: `Scaffold a webhook project that builds, tests and deploys.

The folder NAME gets a Go program with a hook for each kind: those of --mutate
give new objects a label, those of --validate demand it. That is a rule to
begin with; put your own in its place. Each hook has a test, mutating ones
are held against the laws of reinvocation as well, and a test with a real API
server. "make" in the folder shows what else there is: an image, manifests for
a highly available deployment, a CI workflow.

A kind is PLURAL, or GROUP/VERSION/PLURAL where that is not clear (apps/v1/deployments),
or PLURAL.GROUP. A kind of your own needs its Go type, an import path and a name:

  example.com/v1/widgets=example.com/shop/api/v1.Widget

If the package is in the module of the new project, a type and a definition to begin
with are written. If it is in another module, that is fetched, or found where
--replace says; if the API server is to know it in tests, put its definition into
e2e/testdata in place of the one that is written there.

The program makes its own certificates and registers its hooks. With --certs cert-manager
it reads the certificates of cert-manager, and the hooks are registered by YAML.

Until admitkit is published, the go.mod of the project points at the checkout that this
program was built from, or the one that --admitkit names.

All of the project is written or, if something goes wrong, nothing. Needs Go.`,
		Example: `
admitkit init shop-webhooks --mutate pods --validate apps/v1/deployments
admitkit init shop-webhooks --mutate pods,configmaps --module example.com/shop --certs cert-manager
admitkit init shop --mutate example.com/v1/widgets=example.com/shop/api/v1.Widget
admitkit init shop --validate example.com/v1/carts=example.com/cart/api/v1.Cart --replace example.com/cart=../cart
admitkit init --list-kinds`,
		Args: func(c *cobra.Command, args []string) error {
			if kinds {
				return arguments()(c, args)
			}
			return arguments("NAME")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if kinds {
				return printKinds(s)
			}
			o.Name = args[0]
			progress := s.Progress()
			o.Tell = func(what string) { progress.Step("%s", what) }
			result, err := scaffold.Init(c.Context(), o)
			progress.Done()
			if err != nil {
				return err
			}
			printProject(s, result, o.SkipTidy)
			return nil
		},
	}
	flags := c.Flags()
	kindFlags(c, &o)
	flags.StringVar(&o.Module, "module", "", "module path (default example.com/NAME)")
	flags.StringVar(&o.Domain, "domain", "", "domain name that ends the names of webhooks and begins labels (default that of the module)")
	flags.StringVar(&o.Dir, "dir", "", "folder of the project, which must not be there, or be empty (default NAME)")
	flags.StringVar(&o.Certs, "certs", scaffold.SelfManaged, "who makes the certificates: "+scaffold.SelfManaged+" or "+scaffold.CertManager)
	flags.StringArrayVar(&o.Replace, "replace", nil, "folder of a module, as `MODULE=DIR`, for go.mod; may be repeated")
	flags.StringVar(&o.Admitkit, "admitkit", "", "folder with a checkout of admitkit for go.mod to point at (default the one that this program was built from)")
	flags.BoolVar(&o.SkipTidy, "skip-tidy", false, "do not complete go.mod and go.sum: run go mod tidy yourself")
	flags.BoolVar(&kinds, "list-kinds", false, "print the built-in kinds and exit")
	_ = c.RegisterFlagCompletionFunc("certs", cobra.FixedCompletions([]string{scaffold.SelfManaged, scaffold.CertManager}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

// kindFlags adds the flags that name kinds.
func kindFlags(c *cobra.Command, o *scaffold.Options) {
	c.Flags().StringSliceVar(&o.Mutate, "mutate", nil, "`KIND` that a mutating hook is for; may be repeated, or a list with commas")
	c.Flags().StringSliceVar(&o.Validate, "validate", nil, "`KIND` that a validating hook is for; may be repeated, or a list with commas")
	_ = c.RegisterFlagCompletionFunc("mutate", completeKinds) // the flags are there
	_ = c.RegisterFlagCompletionFunc("validate", completeKinds)
}

// completeKinds completes the last one of a list with commas: by its plural, if that tells which one it is.
func completeKinds(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	same := map[string]int{}
	for _, k := range scaffold.Kinds() {
		same[k.Resource]++
	}
	var names []string
	for _, k := range scaffold.Kinds() {
		name := k.String()
		if same[k.Resource] == 1 && !strings.Contains(typed[len(before):], "/") {
			name = k.Resource
		}
		if strings.HasPrefix(before+name, typed) {
			names = append(names, before+name+"\t"+k.Kind+" of "+k.GroupVersion().String())
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func printKinds(s *screen.Screen) error {
	p := s.Painter()
	for _, k := range scaffold.Kinds() {
		line := fmt.Sprintf("%-45s %s", k, k.Kind)
		if k.Beware != "" {
			line = fmt.Sprintf("%-45s %-24s %s", k, k.Kind, p.Yellow("!"))
		}
		if _, err := fmt.Fprintln(s.Out, line); err != nil {
			return err
		}
	}
	s.Note("those with a ! are what Kubernetes itself writes or depends on: a hook for them says what to beware of")
	return nil
}

// printProject says what was made and what to do next.
func printProject(s *screen.Screen, r *scaffold.Result, skipped bool) {
	p := s.Painter()
	fmt.Fprintf(s.Out, "%s: %d files\n\n", p.Bold(r.Dir), len(r.Created))
	printHooks(s, r)
	if r.Project.Checkout != "" {
		s.Note("go.mod uses the checkout of admitkit in %s, until admitkit is published", r.Project.Checkout)
	}
	for _, note := range r.Notes {
		s.Note("%s", note)
	}
	fmt.Fprint(s.Out, "\nnext:\n")
	if r.Dir != "." {
		fmt.Fprintf(s.Out, "  cd %s\n", r.Dir)
	}
	if skipped {
		fmt.Fprintln(s.Out, "  go mod tidy")
	}
	fmt.Fprint(s.Out, "  make test   # unit tests, and tests with a real API server\n  make run    # try it, and edit it while it runs\n"+
		"  git init    # for a repository of its own: .github has a CI workflow\n")
}

// printHooks lists the new hooks.
func printHooks(s *screen.Screen, r *scaffold.Result) {
	width := 0
	for _, h := range r.Hooks {
		width = max(width, len(h.File()))
	}
	for _, h := range r.Hooks {
		what := "new " + h.Kind.Resource + " get the label " + r.Project.Domain + "/team"
		if !h.Mutates {
			what = h.Kind.Resource + " need the label " + r.Project.Domain + "/team"
		}
		fmt.Fprintf(s.Out, "  hooks/%s%s  %s\n", h.File(), strings.Repeat(" ", width-len(h.File())), what)
	}
}
