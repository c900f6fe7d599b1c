// SPDX-License-Identifier: Apache-2.0

// Package program runs hooks as a program: flags, certificates, installation, server, metrics, logs and signals, started
// and stopped in the right order.
//
//	func main() {
//		program.Program{Name: "shop", Hooks: hooks.Hooks}.Main()
//	}
//
// By default the certificate is in files, as cert-manager mounts them, and the webhook configurations are YAML that
// --print-configuration prints. The program then needs no permissions except those that its hooks declare. With
// --self-managed the program makes its certificates and installs its hooks itself. For that it needs the permission to
// change its own webhook configurations, which makes the holder of its token nearly a cluster administrator.
// --print-rbac prints the permissions.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Program serves hooks until it is stopped, or prints their configurations or permissions.
type Program struct {
	// Name is the name of the program, of its configuration objects, and by default of its Service, namespace and
	// ServiceAccount. Required.
	Name string
	// Hooks makes the hooks after the flags were parsed. It runs also to print configurations and permissions: see
	// [Deps]. ctx ends with the program. Required.
	Hooks func(ctx context.Context, deps *Deps) ([]*webhook.Hook, error)
	// Flags adds flags of the program's own. Nil adds none.
	Flags func(flags *flag.FlagSet)

	// Options changes the options of the server before it starts, for example to add an observer of package tracing. Nil
	// changes nothing.
	Options func(*webhook.Options)

	// Config connects to the API server, instead of --kubeconfig, $KUBECONFIG or the cluster of the Pod.
	Config *rest.Config
	// Listener serves the hooks instead of --addr. The program closes it.
	Listener net.Listener

	reload time.Duration // interval at which files are read, or zero for the default
}

// Main runs the program with the arguments and signals of the process. It exits with 0 on success, 2 if a flag is
// unknown or malformed, and 1 on any other error.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	var usage *usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return
	case errors.As(err, &usage): // the flag package has printed the error
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
	os.Exit(1)
}

// A usageError is an error of the flag package.
type usageError struct{ error }

func (u *usageError) Unwrap() error { return u.error }

// options are the flags. Each part of the program has its own.
type options struct {
	name     string
	logLevel string

	printConfiguration, printRBAC, uninstall bool

	cluster cluster
	address address
	files   files
	managed managed
	serving serving
	clients clients
}

// Run runs the program with the given arguments until ctx ends. It writes logs to stderr as JSON. If one part of the
// program fails, Run stops the others and returns the first error. It returns [flag.ErrHelp] after -h.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := p.parse(args, stderr)
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	config, noCluster := o.cluster.config(p.Config)
	if noCluster != nil && !errors.Is(noCluster, ErrNoCluster) {
		return noCluster
	}
	deps := newDeps(config, noCluster, logger)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hooks, err := p.Hooks(logr.NewContext(ctx, logger), deps)
	if err != nil {
		return fmt.Errorf("cannot create the hooks: %w", err)
	}
	switch {
	case o.printConfiguration:
		return o.printConfigurations(stdout, hooks)
	case o.printRBAC:
		return o.printPermissions(stdout, hooks, deps.Rules())
	case noCluster != nil && (o.managed.on || deps.needsCluster()):
		return noCluster
	case o.uninstall:
		return o.remove(ctx, deps, hooks)
	}
	return p.serve(ctx, o, deps, hooks)
}

func (p Program) parse(args []string, stderr io.Writer) (*options, error) {
	if p.Name == "" || p.Hooks == nil {
		return nil, errors.New("program: Name and Hooks are required")
	}
	o := &options{name: p.Name, files: files{interval: p.reload}}
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.logLevel, "log-level", "info", "`level` of the log: error, info, or debug, which shows denials")
	flags.BoolVar(&o.printConfiguration, "print-configuration", false, "print the webhook configurations as YAML and exit")
	flags.BoolVar(&o.printRBAC, "print-rbac", false, "print the permissions that the program needs as YAML and exit")
	flags.BoolVar(&o.uninstall, "uninstall", false, "remove the configurations that --self-managed installed, wait until the API server calls no hook, and exit")
	o.cluster.addFlags(flags)
	o.address.addFlags(flags, p.Name)
	o.files.addFlags(flags)
	o.managed.addFlags(flags, p.Name)
	o.serving.addFlags(flags)
	o.clients.addFlags(flags)
	if p.Flags != nil {
		p.Flags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return nil, &usageError{err}
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the program takes only flags", flags.Arg(0))
	}
	if o.uninstall && !o.managed.on {
		return nil, errors.New("--uninstall removes what --self-managed installed: add --self-managed, and the other flags of the running program")
	}
	return o, nil
}
