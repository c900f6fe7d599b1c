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
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

func newAPIServer(s *screen.Screen) *cobra.Command {
	c := &cobra.Command{
		Use:   "apiserver",
		Short: "Build, find and start a real API server",
		Long: `Build, find and start a real API server.

admitkit looks for kube-apiserver, etcd and kubectl in this order:

  1. the folder $KUBEBUILDER_ASSETS, if it is set
  2. the binaries that "admitkit apiserver install" built: in $ADMITKIT_CACHE, or
     in your cache folder (in a checkout of admitkit: its folder .cache)
  3. the binaries that setup-envtest downloaded, newest version first

admitkit can build several versions of Kubernetes. --kubernetes chooses one for
a command, and $ADMITKIT_KUBERNETES for all commands. With --kubernetes,
$KUBEBUILDER_ASSETS is not used.

"admitkit dev" and "admitkit verify" use these binaries.`,
		GroupID: "tools",
	}
	c.AddCommand(newAPIServerInstall(s), newAPIServerPath(s), newAPIServerStart(s))
	return c
}

func newAPIServerInstall(s *screen.Screen) *cobra.Command {
	var list, printPath, force bool
	var kubernetes string
	c := &cobra.Command{
		Use:   "install",
		Short: "Build kube-apiserver, etcd and kubectl, once",
		Long: `Build kube-apiserver, etcd and kubectl from source, and print the folder with the
binaries. admitkit pins the Go modules by version and checksum.

This needs Go, a module proxy or a complete module cache, 200 MB of disk, and
about 5 minutes on 2 cores. Binaries that exist are not built again. If
$KUBEBUILDER_ASSETS is set, install prints that folder and builds nothing,
unless --kubernetes chooses a version.`,
		Example: `
admitkit apiserver install
admitkit apiserver install --kubernetes 1.37
admitkit apiserver install --list
export KUBEBUILDER_ASSETS=$(admitkit apiserver install)
ADMITKIT_CACHE=/var/cache/ci admitkit apiserver install`,
		Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case list:
				return listCandidates(s, kubernetes)
			case printPath:
				dir, err := build.Target(kubernetes)
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
			dir, err := build.Build(c.Context(), build.Options{Kubernetes: kubernetes, Force: force, Note: note, Step: progress.Step})
			progress.Done()
			if err == nil {
				fmt.Fprintln(s.Out, dir)
			}
			return err
		},
	}
	c.Flags().BoolVar(&list, "list", false, "list the folders that admitkit searches and their state; build nothing")
	c.Flags().BoolVar(&printPath, "print-path", false, "print the folder that install would use; build nothing")
	c.Flags().BoolVar(&force, "force", false, "build again even if the binaries exist")
	c.MarkFlagsMutuallyExclusive("list", "print-path", "force")
	kubernetesFlag(c, &kubernetes)
	return c
}

// listCandidates prints the folders in which admitkit looks for kube-apiserver, etcd and kubectl. For each it prints
// which programs are missing, or that the folder is complete or in use.
func listCandidates(s *screen.Screen, kubernetes string) error {
	candidates, err := build.Candidates(kubernetes)
	if err != nil {
		return err
	}
	p := s.Painter()
	used := slices.IndexFunc(candidates, func(c build.Candidate) bool {
		return len(c.Missing) == 0 || c.Source == build.Assets
	})
	for i, c := range candidates {
		state := "complete"
		switch {
		case len(c.Missing) == len(build.Binaries):
			state = "empty"
		case len(c.Missing) > 0:
			state = "lacks " + strings.Join(c.Missing, ", ")
		case i == used:
			state = p.Green("in use")
		}
		fmt.Fprintf(s.Out, "%s: %s\n  %s\n", p.Bold(c.Source), state, c.Dir)
	}
	return nil
}

// kubernetesFlag defines the flag that chooses a version of Kubernetes.
func kubernetesFlag(c *cobra.Command, value *string) {
	var all []string
	for _, r := range build.Releases() {
		all = append(all, strings.TrimPrefix(r.Version(), "v"))
	}
	c.Flags().StringVar(value, "kubernetes", "", "use this `VERSION` of Kubernetes, such as 1.37; known: "+strings.Join(all, ", ")+" (default "+strings.TrimPrefix(build.Default().Version(), "v")+")")
}

func newAPIServerPath(s *screen.Screen) *cobra.Command {
	var kubernetes string
	c := &cobra.Command{
		Use:   "path",
		Short: "Print the folder with kube-apiserver, etcd and kubectl",
		Long: `Print the folder with kube-apiserver, etcd and kubectl, and nothing else. If this
machine has none, the exit code is 2.`,
		Example: `
admitkit apiserver path
export KUBEBUILDER_ASSETS=$(admitkit apiserver path)
$(admitkit apiserver path)/kubectl version --client`,
		Args: arguments(),
		RunE: func(*cobra.Command, []string) error {
			dir, err := build.Find(kubernetes)
			if err == nil {
				fmt.Fprintln(s.Out, dir)
			}
			return err
		},
	}
	kubernetesFlag(c, &kubernetes)
	return c
}

func newAPIServerStart(s *screen.Screen) *cobra.Command {
	var o play.Options
	c := &cobra.Command{
		Use:   "start [-- COMMAND [ARGUMENTS]]",
		Short: "Start a real API server for experiments",
		Long: `Start a real kube-apiserver with etcd on 127.0.0.1, and print the "export
KUBECONFIG=" line for kubectl. There are no nodes and no controllers: the server
stores, defaults, validates and admits objects, but nothing runs.

Ctrl-C stops the server and deletes its data. With COMMAND, start runs it with
KUBECONFIG set and kubectl on its PATH. The server stops when the command ends,
and the exit code is that of the command.`,
		Example: `
admitkit apiserver start
admitkit apiserver start --kubernetes 1.35
admitkit apiserver start -- kubectl create namespace shop
admitkit apiserver start -- go test ./test/e2e/...
admitkit apiserver start --audit-log audit.log -- make e2e && admitkit audit audit.log
admitkit apiserver start --feature-gates MutatingAdmissionPolicy=true --flag v=4`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return arguments()(c, args)
			}
			if o.Port < 0 || o.Port > math.MaxUint16 {
				return problem.New("--port %d is not a port: use a number from 1 to %d, or 0 for a free port", o.Port, math.MaxUint16)
			}
			o.Command = args
			return play.Run(c.Context(), s, o)
		},
	}
	kubernetesFlag(c, &o.Kubernetes)
	c.Flags().IntVar(&o.Port, "port", 0, "port to listen on (default a free port)")
	c.Flags().StringVar(&o.AuditLog, "audit-log", "", `write an audit log to this file, for "admitkit audit"`)
	c.Flags().StringVar(&o.FeatureGates, "feature-gates", "", "feature gates, such as NAME=true,OTHER=false")
	c.Flags().StringArrayVar(&o.Flags, "flag", nil, "flag for kube-apiserver, as NAME=VALUE; can be repeated")
	return c
}
