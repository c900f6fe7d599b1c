// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/apiserver/build"
	"github.com/admitkit/admitkit/internal/apiserver/play"
	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func newAPIServer(s *screen.Screen) *cobra.Command {
	c := &cobra.Command{
		Use:   "apiserver",
		Short: "Build, find and start a real API server",
		Long: `Build, find and start a real API server.

kube-apiserver, etcd and kubectl are looked for in this order:

  1. $KUBEBUILDER_ASSETS
  2. what "admitkit apiserver install" built: below $ADMITKIT_CACHE, or else in
     the user's folder for caches (in a checkout of admitkit: in its .cache)
  3. what setup-envtest downloaded, the newest version first

"admitkit dev", "verify --server" and "explain" use what is found.`,
		GroupID: "tools",
	}
	c.AddCommand(newAPIServerInstall(s), newAPIServerPath(s), newAPIServerStart(s))
	return c
}

func newAPIServerInstall(s *screen.Screen) *cobra.Command {
	var list, printPath, force bool
	c := &cobra.Command{
		Use:   "install",
		Short: "Build kube-apiserver, etcd and kubectl, once",
		Long: `Build kube-apiserver, etcd and kubectl from Go modules that are pinned by
version and checksum inside admitkit, and print the folder that holds them.

This needs Go, a module proxy (or a module cache that has everything), about
5 minutes on 2 cores, and 200 MB. What is there already is not built again.
With $KUBEBUILDER_ASSETS set, that folder is used and nothing is built.`,
		Example: `
admitkit apiserver install
admitkit apiserver install --list
export KUBEBUILDER_ASSETS=$(admitkit apiserver install)
ADMITKIT_CACHE=/var/cache/ci admitkit apiserver install`,
		Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case list:
				return listPlaces(s)
			case printPath:
				dir, err := build.Chosen()
				if err == nil {
					fmt.Fprintln(s.Out, dir)
				}
				return err
			}
			progress := s.Progress()
			note := func(format string, args ...any) {
				progress.Done()
				s.Note(format, args...)
			}
			dir, err := build.Build(c.Context(), build.Options{Force: force, Note: note, Step: progress.Step})
			progress.Done()
			if err == nil {
				fmt.Fprintln(s.Out, dir)
			}
			return err
		},
	}
	c.Flags().BoolVar(&list, "list", false, "list where binaries are looked for and what is there; build nothing")
	c.Flags().BoolVar(&printPath, "print-path", false, "print the folder that install uses; build nothing")
	c.Flags().BoolVar(&force, "force", false, "build again what is there")
	c.MarkFlagsMutuallyExclusive("list", "print-path", "force")
	return c
}

// listPlaces prints each place with what is there.
func listPlaces(s *screen.Screen) error {
	places, err := build.Places()
	if err != nil {
		return err
	}
	p := s.Painter()
	used := slices.IndexFunc(places, func(place build.Place) bool {
		return len(place.Missing) == 0 || place.Name == build.Assets
	})
	for i, place := range places {
		state := "complete"
		switch {
		case len(place.Missing) == len(build.Binaries):
			state = "nothing there"
		case len(place.Missing) > 0:
			state = "lacks " + strings.Join(place.Missing, ", ")
		case i == used:
			state = p.Green("in use")
		}
		fmt.Fprintf(s.Out, "%s: %s\n  %s\n", p.Bold(place.Name), state, place.Dir)
	}
	return nil
}

func newAPIServerPath(s *screen.Screen) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print the folder with kube-apiserver, etcd and kubectl",
		Long: `Print the folder with kube-apiserver, etcd and kubectl, and nothing else.
If they are nowhere on this machine, the exit code is 2.`,
		Example: `
admitkit apiserver path
export KUBEBUILDER_ASSETS=$(admitkit apiserver path)
$(admitkit apiserver path)/kubectl version --client`,
		Args: arguments(),
		RunE: func(*cobra.Command, []string) error {
			dir, err := build.Find()
			if err == nil {
				fmt.Fprintln(s.Out, dir)
			}
			return err
		},
	}
}

func newAPIServerStart(s *screen.Screen) *cobra.Command {
	var o play.Options
	c := &cobra.Command{
		Use:   "start [-- COMMAND [ARGUMENTS]]",
		Short: "Start a real API server to play with",
		Long: `Start a real kube-apiserver with its etcd on 127.0.0.1, and print the line that
has kubectl use it. There are no nodes and no controllers: objects are stored,
defaulted, validated and admitted, and nothing runs.

It ends with Ctrl-C, and its data with it. With a COMMAND, that is run with
KUBECONFIG set (and kubectl on its PATH); the server ends when it does, and the
exit code is that of the command.`,
		Example: `
admitkit apiserver start
admitkit apiserver start -- kubectl create namespace shop
admitkit apiserver start -- go test ./test/e2e/...
admitkit apiserver start --audit-log audit.log -- make e2e && admitkit audit audit.log
admitkit apiserver start --feature-gates MutatingAdmissionPolicy=true --flag v=4`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return arguments()(c, args)
			}
			if o.Port < 0 || o.Port > math.MaxUint16 {
				return problem.New("--port %d: a port is a number from 1 to %d, or 0 for any that is free", o.Port, math.MaxUint16)
			}
			o.Command = args
			return play.Run(c.Context(), s, o)
		},
	}
	c.Flags().IntVar(&o.Port, "port", 0, "port to listen on (default any that is free)")
	c.Flags().StringVar(&o.AuditLog, "audit-log", "", "write an audit log into this file, as admitkit audit reads it")
	c.Flags().StringVar(&o.FeatureGates, "feature-gates", "", "feature gates, such as NAME=true,OTHER=false")
	c.Flags().StringArrayVar(&o.Flags, "flag", nil, "a flag for kube-apiserver, as NAME=VALUE; may be repeated")
	return c
}
