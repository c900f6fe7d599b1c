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
		Short:   "Scaffold a webhook project with tests, manifests and CI",
		GroupID: "write",
		Long: `Scaffold a webhook project with tests, manifests and CI.

The project is a Go program in the folder NAME. For each kind that --mutate names,
it has a sample hook that sets a label on new objects. For each kind that
--validate names, it has a sample hook that requires this label. Replace the
sample hooks with your own policy.

Each hook has a unit test and a test with a real API server. The tests of mutating
hooks also check that a second call is safe. The project also has a Dockerfile,
manifests with two replicas, and a CI workflow. "make" lists the targets.

Name a kind by its plural, such as pods. If several groups have that plural, write
GROUP/VERSION/PLURAL or PLURAL.GROUP, such as apps/v1/deployments. For a custom
resource, also name its Go type:

  GROUP/VERSION/PLURAL=IMPORTPATH.TYPE
  example.com/v1/widgets=example.com/shop/api/v1.Widget

If the import path is in the new module, init writes the Go type and a
CustomResourceDefinition for you to complete. If it is in another module, the go
command downloads that module, or uses the folder given with --replace. For such a
type, also replace the generated CustomResourceDefinition in e2e/testdata with the
real one.

By default the certificates come from cert-manager, and YAML manifests register
the hooks. The program itself then needs no permissions.

With --certs self-managed the project needs no cert-manager: the program creates its
own certificates and registers its own hooks. Whoever has the token of its
ServiceAccount can then change its webhook configurations, and so select the requests
that the hooks see and change. Protect this token like the token of a cluster
administrator.

admitkit is not published yet. Therefore go.mod refers to a checkout: the one that
--admitkit names, or else the one from which admitkit was built.

init needs Go. If a step fails, init writes nothing.`,
		Example: `
admitkit init shop-webhooks --mutate pods --validate apps/v1/deployments
admitkit init shop-webhooks --mutate pods,configmaps --module example.com/shop --certs self-managed
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
			o.Progress = func(step string) { progress.Step("%s", step) }
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
	flags.StringVar(&o.Domain, "domain", "", "domain for the names of webhooks and labels (default the domain of the module path)")
	flags.StringVar(&o.Dir, "dir", "", "folder of the project; it must be empty or not exist (default NAME)")
	flags.StringVar(&o.Certs, "certs", scaffold.CertManager, "source of the certificates: "+scaffold.CertManager+" or "+scaffold.SelfManaged)
	flags.StringVar(&o.PriorityClass, "priority-class", "", "PriorityClass of the Pods, such as system-cluster-critical (default none)")
	flags.StringArrayVar(&o.Replace, "replace", nil, "use the Go module in folder DIR instead of downloading MODULE, as `MODULE=DIR`; can be repeated")
	flags.StringVar(&o.Admitkit, "admitkit", "", "folder with the checkout of admitkit for go.mod to refer to (default the checkout from which admitkit was built)")
	flags.BoolVar(&o.SkipTidy, "skip-tidy", false, `do not run "go mod tidy", which completes go.mod and go.sum`)
	flags.BoolVar(&kinds, "list-kinds", false, "print the built-in kinds and exit")
	_ = c.RegisterFlagCompletionFunc("certs", cobra.FixedCompletions([]string{scaffold.CertManager, scaffold.SelfManaged}, cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag does not exist
	return c
}

// kindFlags adds the flags --mutate and --validate.
func kindFlags(c *cobra.Command, o *scaffold.Options) {
	c.Flags().StringSliceVar(&o.Mutate, "mutate", nil, "`KIND` that gets a mutating hook; can be repeated or a comma-separated list")
	c.Flags().StringSliceVar(&o.Validate, "validate", nil, "`KIND` that gets a validating hook; can be repeated or a comma-separated list")
	_ = c.RegisterFlagCompletionFunc("mutate", completeKinds) // fails only if the flag does not exist
	_ = c.RegisterFlagCompletionFunc("validate", completeKinds)
}

// completeKinds completes the last resource in a comma-separated list. It offers a name without the API group, such as
// "pods", if only one kind has that name.
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
	s.Note("'!' marks kinds that Kubernetes itself writes or depends on. The comment in the generated hook says what to consider")
	return nil
}

// printProject prints the hooks of a new project and the next steps.
func printProject(s *screen.Screen, r *scaffold.Result, skipped bool) {
	p := s.Painter()
	fmt.Fprintf(s.Out, "%s: %d files\n\n", p.Bold(r.Dir), len(r.Created))
	printHooks(s, r)
	if r.Project.Checkout != "" {
		s.Note("go.mod uses the checkout of admitkit in %s until admitkit is published", r.Project.Checkout)
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
	fmt.Fprint(s.Out, "  make test   # unit tests, and tests with a real API server\n  make run    # run the hooks; they are rebuilt when you edit them\n"+
		"  git init    # a repository of its own; .github has a CI workflow\n")
}

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
