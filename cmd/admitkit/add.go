// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/scaffold"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newAdd(s *screen.Screen) *cobra.Command {
	c := &cobra.Command{
		Use:     "add",
		Short:   "Extend a scaffolded project",
		GroupID: "write",
		Long:    `Extend a project that "admitkit init" generated. Your own code is not changed.`,
		Example: `
admitkit add hook --mutate configmaps
admitkit add hook --validate batch/v1/jobs,batch/v1/cronjobs`,
	}
	c.AddCommand(newAddHook(s))
	return c
}

func newAddHook(s *screen.Screen) *cobra.Command {
	var o scaffold.Options
	c := &cobra.Command{
		Use:   "hook",
		Short: "Add hooks to a scaffolded project",
		Long: `Add hooks to the project in the current folder, which "admitkit init" generated.

For each hook this writes four files: the hook and its unit test in hooks/, a
test with a real API server in e2e/, and a sample object in samples/.

Existing files are not changed, except for those that are derived from the hooks:

  hooks/hooks.go   the list that the function Hooks returns
  config/          the generated blocks of the manifests
  go.mod, go.sum   by "go mod tidy"

Name kinds as for "admitkit init". If one of the new files already exists, or if
the program does not compile with the new hooks, nothing is changed.`,
		Example: `
admitkit add hook --mutate configmaps
admitkit add hook --mutate pods --validate pods --dir ../shop-webhooks
admitkit add hook --validate example.com/v1/gadgets=example.com/shop-webhooks/api/v1.Gadget`,
		Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			progress := s.Progress()
			o.Progress = func(step string) { progress.Step("%s", step) }
			result, err := scaffold.Add(c.Context(), o)
			progress.Done()
			if err != nil {
				return err
			}
			printHooks(s, result)
			printFiles(s, result)
			return nil
		},
	}
	kindFlags(c, &o)
	c.Flags().StringVar(&o.Dir, "dir", "", "folder of the project, or a folder in it (default the current folder)")
	c.Flags().BoolVar(&o.SkipTidy, "skip-tidy", false, `do not run "go mod tidy"`)
	return c
}

// printFiles prints the names of the files that "admitkit add" created or changed, except the hooks that printHooks
// prints. It also prints the notes and the next step.
func printFiles(s *screen.Screen, r *scaffold.Result) {
	fmt.Fprintln(s.Out)
	for _, name := range r.Created {
		if !slices.ContainsFunc(r.Hooks, func(h *scaffold.Hook) bool { return name == "hooks/"+h.File() }) {
			fmt.Fprintf(s.Out, "  new      %s\n", name)
		}
	}
	for _, name := range r.Written {
		fmt.Fprintf(s.Out, "  changed  %s\n", name)
	}
	for _, note := range r.Notes {
		s.Note("%s", note)
	}
	fmt.Fprint(s.Out, "\nnext:\n  make test\n")
}
