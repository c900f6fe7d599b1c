// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// The exit codes of all commands.
const (
	exitOK        = 0
	exitFound     = 1
	exitUndecided = 2
)

// run runs the command line and returns the exit code.
func run(ctx context.Context, s *screen.Screen, args []string) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit problem.Exit
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, problem.ErrFound):
		return exitFound
	case errors.Is(context.Cause(ctx), errOutputClosed): // the reader has gone: print nothing
	case ctx.Err() != nil:
		s.Problem(errors.New("interrupted"))
	case errors.As(err, &exit):
		return int(exit)
	default:
		s.Problem(err)
	}
	return exitUndecided
}

// newRoot returns the root command with all subcommands.
func newRoot(s *screen.Screen) *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use:   "admitkit",
		Short: "Scaffold, run, verify, lint and explain Kubernetes admission webhooks",
		Long: `Scaffold, run, verify, lint and explain Kubernetes admission webhooks.

"verify", "lint", "explain", "audit", "doctor", "record" and "replay" work with
webhooks in any language.
"init", "add", "manifests" and "dev" are for hooks in Go. "dev --url" registers a
running webhook, in any language.

Exit codes of all commands:

  0  success, and nothing was found
  1  a problem was found, such as a finding of "lint" or a rule (law) of "verify" that fails
  2  the command failed, or too little is known for an answer

If a command uses other exit codes, its help lists them.`,
		Example: `
admitkit init shop-webhooks --mutate pods
admitkit lint config/
admitkit explain -f pod.yaml --cluster
admitkit verify --url https://127.0.0.1:9443/mutate --ca-file ca.crt -f pod.yaml`,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.PersistentFlags().StringVar(&s.Colour, "color", "auto", "when to use colours: auto, always or never")
	root.PersistentFlags().BoolVarP(&s.Quiet, "quiet", "q", false, "print no notes and no progress")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		switch s.Colour {
		case "auto", "always", "never":
			return nil
		}
		return problem.New("--color=%s is not supported: use auto, always or never", s.Colour)
	}
	root.Version = currentVersions().String()
	root.SetVersionTemplate("{{.Version}}")
	root.Flags().Bool("version", false, `print the versions, as "admitkit version" does`)
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: "write", Title: "Write a webhook:"},
		&cobra.Group{ID: "check", Title: "Check a webhook, in any language:"},
		&cobra.Group{ID: "tools", Title: "Tools:"},
	)
	root.AddCommand(commands(s)...)
	root.SetHelpCommandGroupID("tools")
	root.SetCompletionCommandGroupID("tools")
	root.InitDefaultCompletionCmd() // now, so that the functions below see it
	refuseHelpOfUnknown(root)
	refuseUnknownSubcommands(root)
	registerCompletions(root, root.PersistentFlags())
	nameFlagValues(root, root.PersistentFlags())
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	return root
}

// usageTemplate changes cobra's template in two ways. For a command that only has subcommands, it omits the usage line
// that shows the command alone. It also wraps the flags at 80 columns.
func usageTemplate(template string) string {
	template = strings.Replace(template, "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1)
	return strings.ReplaceAll(template, "Flags.FlagUsages ", "Flags.FlagUsagesWrapped 80 ")
}

// refuseHelpOfUnknown makes "help NAME" fail if NAME is not a command.
func refuseHelpOfUnknown(root *cobra.Command) {
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

func commands(s *screen.Screen) []*cobra.Command {
	return []*cobra.Command{
		newInit(s),
		newAdd(s),
		newDev(s),
		newManifests(s),
		newChart(s),
		newVerify(s),
		newVet(s),
		newLint(s),
		newExplain(s),
		newAudit(s),
		newRecord(s), newReplay(s),
		newDoctor(s),
		newAPIServer(s),
		newVersion(s),
	}
}

// arguments returns a check of the number of arguments: a command takes one for each name. If the last name ends in
// "...", the command also takes more.
func arguments(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		last := ""
		if len(names) > 0 {
			last = names[len(names)-1]
		}
		switch {
		case len(args) < len(names):
			return problem.New("%s: argument %s is missing", subcommandPath(c), strings.TrimSuffix(names[len(args)], "...")).Hint("%s --help", c.CommandPath())
		case len(args) > len(names) && !strings.HasSuffix(last, "..."):
			return problem.New("%s: unexpected argument %q", subcommandPath(c), args[len(names)]).Hint("%s --help", c.CommandPath())
		}
		return nil
	}
}

// subcommandPath returns the path of a command without the program's name, because every error line begins with that
// name.
func subcommandPath(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// outputFlag adds the flag -o, which accepts the given formats, and its shell completion.
func outputFlag(c *cobra.Command, forms ...string) *screen.Outputs {
	o := screen.NewOutputs(forms...)
	c.Flags().VarP(o, "output", "o", o.Usage())
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag does not exist
	return o
}

// refuseUnknownSubcommands makes each command that only has subcommands fail for an unknown name. It also indents
// the examples of all commands.
func refuseUnknownSubcommands(c *cobra.Command) {
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
		refuseUnknownSubcommands(sub)
	}
	if c.Example != "" {
		c.Example = "  " + strings.ReplaceAll(strings.TrimSpace(c.Example), "\n", "\n  ")
	}
}
