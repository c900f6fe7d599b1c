// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// The exit codes of all commands.
const (
	exitHolds        = 0
	exitFound        = 1
	exitCouldNotTell = 2
)

// run runs the command line and returns the exit code.
func run(ctx context.Context, s *screen.Screen, args []string) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit problem.Exit
	switch {
	case err == nil:
		return exitHolds
	case errors.Is(err, problem.ErrFound):
		return exitFound
	case errors.Is(context.Cause(ctx), errUnread): // nor does anybody ask why it ended
	case ctx.Err() != nil:
		s.Problem(errors.New("interrupted"))
	case errors.As(err, &exit):
		return int(exit)
	default:
		s.Problem(err)
	}
	return exitCouldNotTell
}

// newRoot returns the command with all others below it.
func newRoot(s *screen.Screen) *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use:   "admitkit",
		Short: "Scaffold, run, verify, lint and explain Kubernetes admission webhooks",
		Long: `Scaffold, run, verify, lint and explain Kubernetes admission webhooks.

Exit codes: 0 it holds, 1 something was found, 2 it could not be told.`,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.PersistentFlags().StringVar(&s.Colour, "color", "auto", "colours: auto, always or never")
	root.PersistentFlags().BoolVarP(&s.Quiet, "quiet", "q", false, "leave out notes and progress")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		switch s.Colour {
		case "auto", "always", "never":
			return nil
		}
		return problem.New("--color=%s: there are auto, always and never", s.Colour)
	}
	root.Version = currentVersions().String()
	root.SetVersionTemplate("{{.Version}}")
	root.Flags().Bool("version", false, `print what "admitkit version" does`)
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: "write", Title: "Write a webhook:"},
		&cobra.Group{ID: "judge", Title: "Judge a webhook, in any language:"},
		&cobra.Group{ID: "tools", Title: "Tools:"},
	)
	root.AddCommand(commands(s)...)
	root.SetHelpCommandGroupID("tools")
	root.SetCompletionCommandGroupID("tools")
	root.InitDefaultCompletionCmd() // cobra would add them later, and less strict
	helps(root)
	strict(root)
	completions(root, root.PersistentFlags())
	named(root, root.PersistentFlags())
	root.SetUsageTemplate(usageOf(root.UsageTemplate()))
	return root
}

// usageOf has the usage of a command that only holds others leave out the line for using it alone, and lines that
// are too long go on below.
func usageOf(template string) string {
	template = strings.Replace(template, "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1)
	return strings.ReplaceAll(template, "Flags.FlagUsages ", "Flags.FlagUsagesWrapped 80 ")
}

// helps has the command help fail for what is no command.
func helps(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		show := help.Run
		help.Run = nil
		help.RunE = func(c *cobra.Command, args []string) error {
			if about, rest, err := root.Find(args); err == nil && len(rest) > 0 && about.HasSubCommands() {
				return unknownCommand(about, rest[0])
			}
			show(c, args)
			return nil
		}
	}
}

func unknownCommand(c *cobra.Command, name string) error {
	unknown := problem.New("unknown command %q for %q", name, c.CommandPath())
	c.SuggestionsMinimumDistance = 2
	for _, name := range c.SuggestionsFor(name) {
		unknown = unknown.Hint("did you mean: %s %s", c.CommandPath(), name)
	}
	return unknown.Hint("%s --help", c.CommandPath())
}

// commands returns every command.
func commands(s *screen.Screen) []*cobra.Command {
	return []*cobra.Command{
		newInit(s),
		newAdd(s),
		newDev(s),
		newManifests(s),
		newVerify(s),
		newLint(s),
		newExplain(s),
		newAudit(s),
		newAPIServer(s),
		newVersion(s),
	}
}

// arguments is for the Args of a command: it takes as many as it names, and a last name that ends in "..." stands
// for one or more.
func arguments(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		last := ""
		if len(names) > 0 {
			last = names[len(names)-1]
		}
		switch {
		case len(args) < len(names):
			return problem.New("%s: %s is missing", below(c), strings.TrimSuffix(names[len(args)], "...")).Hint("%s --help", c.CommandPath())
		case len(args) > len(names) && !strings.HasSuffix(last, "..."):
			return problem.New("%s: %q is one argument too many", below(c), args[len(names)]).Hint("%s --help", c.CommandPath())
		}
		return nil
	}
}

// below names a command as an error does, which begins with the name of the program.
func below(c *cobra.Command) string { return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") }

// outputFlag adds -o.
func outputFlag(c *cobra.Command, forms ...string) *screen.Outputs {
	o := screen.NewOutputs(forms...)
	c.Flags().VarP(o, "output", "o", o.Usage())
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return o
}

// strict has a command that only holds others refuse names that it does not know.
func strict(c *cobra.Command) {
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownCommand(c, args[0])
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
	if c.Example != "" {
		c.Example = "  " + strings.ReplaceAll(strings.TrimSpace(c.Example), "\n", "\n  ")
	}
}
