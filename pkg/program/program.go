// SPDX-License-Identifier: Apache-2.0

// Package program runs hooks as a program: flags, certificates, installation, server, metrics, logs and signals,
// started and stopped in the right order.
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
	"k8s.io/klog/v2"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Program serves hooks until it is stopped, or prints their configurations or permissions.
type Program struct {
	// Name is the name of the program, of its configuration objects, and by default of its Service, namespace and
	// ServiceAccount. Required.
	Name string
	// Hooks makes the hooks after the flags were parsed. It also runs when configurations or permissions are
	// printed: see [Deps]. ctx ends with the program. Required.
	Hooks func(ctx context.Context, deps *Deps) ([]*webhook.Hook, error)
	// Flags adds the program's own flags. Nil adds none.
	Flags func(flags *flag.FlagSet)

	// Options changes the options of the server before it starts, for example to add an observer of package tracing. If
	// it sets Ready, that is a further condition of readiness. Nil changes nothing.
	Options func(*webhook.Options)

	// Config connects to the API server, instead of --kubeconfig, $KUBECONFIG or the cluster of the Pod.
	Config *rest.Config
	// Listener serves the hooks instead of --addr. The program closes it, even after an error.
	Listener net.Listener

	reload time.Duration // interval at which files are read, or zero for the default
}

// Main runs the program with the arguments and signals of the process. After SIGTERM or an interrupt it stops as
// package webhook describes; a second signal ends it at once. It exits with 0 on success, 2 if a flag is unknown or
// malformed, and 1 on any other error. It makes the log of client-go (klog) part of the program's log.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal has its default effect
	err := p.run(ctx, os.Args[1:], os.Stdout, os.Stderr, func(logger logr.Logger) {
		klog.SetLoggerWithOptions(logger.WithName("client-go"), klog.ContextualLogger(true))
	})
	stop()
	var usage *usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return
	case errors.As(err, &usage): // parse has printed the error
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
	os.Exit(1)
}

// A usageError is an error of the flag package.
type usageError struct{ error }

func (u *usageError) Unwrap() error { return u.error }

// options holds the values of the flags, grouped by the part of the program that they configure.
type options struct {
	name     string
	logLevel slog.Level

	printConfiguration, printRBAC, uninstall bool

	output string // the file to write instead of standard output, or ""

	cluster cluster
	address address
	files   files
	managed managed
	serving serving
	clients clients
}

// serves reports whether the program serves hooks, rather than printing or removing something.
func (o *options) serves() bool { return !o.printConfiguration && !o.printRBAC && !o.uninstall }

// Run runs the program with the given arguments until ctx ends, and then stops it as package webhook describes. It
// writes logs to stderr as JSON. If one part of the program fails, Run stops the others and returns the first error. It
// returns [flag.ErrHelp] after -h.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return p.run(ctx, args, stdout, stderr, func(logr.Logger) {})
}

// run implements Run. It passes the logger to useLogger after it has parsed the flags.
func (p Program) run(ctx context.Context, args []string, stdout, stderr io.Writer, useLogger func(logr.Logger)) error {
	if p.Listener != nil {
		defer func() { _ = p.Listener.Close() }() // an error is expected: the server closes it, too
	}
	o, err := p.parse(args, stderr)
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: o.logLevel}))
	useLogger(logger)
	config, noCluster := o.cluster.config(p.Config)
	if noCluster != nil && !errors.Is(noCluster, ErrNoCluster) {
		return noCluster
	}
	// Caches and certificates must outlive ctx, because the server answers calls for a while after the end of ctx.
	working, end := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logger))
	defer end()
	deps := newDeps(config, noCluster, o.address.namespace, logger)
	hooks, err := p.makeHooks(ctx, working, end, deps)
	j := &job{options: o, config: config, deps: deps, hooks: hooks}
	switch {
	case err != nil && errors.Is(err, context.Canceled) && ctx.Err() != nil && o.serves():
		return nil // the program was stopped before it served
	case err != nil:
		return fmt.Errorf("cannot create the hooks: %w", err)
	case o.printConfiguration:
		return o.print(stdout, j.writeConfigurations)
	case o.printRBAC:
		return o.print(stdout, j.writePermissions)
	case noCluster != nil && (o.managed.on || deps.needsCluster()):
		return noCluster
	case o.uninstall:
		return j.remove(ctx)
	case ctx.Err() != nil:
		return nil
	}
	return p.serve(ctx, working, end, j)
}

// A job is one run of the program: its flags, and its hooks with their dependencies.
type job struct {
	*options
	config *rest.Config // nil without a cluster
	deps   *Deps
	hooks  []*webhook.Hook
}

// makeHooks calls p.Hooks with the context named working. If ctx ends before p.Hooks returns, makeHooks calls end,
// which ends working, too.
func (p Program) makeHooks(ctx, working context.Context, end func(), deps *Deps) ([]*webhook.Hook, error) {
	defer context.AfterFunc(ctx, end)()
	return p.Hooks(working, deps)
}

func (p Program) parse(args []string, stderr io.Writer) (*options, error) {
	if p.Name == "" || p.Hooks == nil {
		return nil, errors.New("program: Name and Hooks are required")
	}
	o := &options{name: p.Name, files: files{interval: p.reload}}
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "`level` of the log: error, info, or debug, which shows denials")
	flags.BoolVar(&o.printConfiguration, "print-configuration", false, "print the webhook configurations as YAML and exit")
	flags.BoolVar(&o.printRBAC, "print-rbac", false, "print the permissions that the program needs as YAML and exit")
	flags.StringVar(&o.output, "output", "", "with --print-configuration or --print-rbac: `file` whose generated block is replaced, instead of printing; other text of the file stays")
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
	if err := parseFlags(flags, args); err != nil {
		return nil, &usageError{err}
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the program takes only flags", flags.Arg(0))
	}
	if o.uninstall && !o.managed.on {
		return nil, errors.New("--uninstall removes what --self-managed installed: add --self-managed, and the other flags of the running program")
	}
	switch {
	case o.printConfiguration && o.printRBAC:
		return nil, errors.New("--print-configuration and --print-rbac exclude each other: run the program twice")
	case o.output != "" && o.serves():
		return nil, errors.New("--output is only for --print-configuration and --print-rbac")
	}
	return o, nil
}

// parseFlags parses the arguments. After -h it prints all flags. After an error it prints only the error, because the
// list of all flags would hide it.
func parseFlags(flags *flag.FlagSet, args []string) error {
	output, usage := flags.Output(), flags.Usage
	flags.SetOutput(io.Discard) // Parse would print the error and all flags
	flags.Usage = func() {}
	err := flags.Parse(args)
	flags.SetOutput(output)
	if errors.Is(err, flag.ErrHelp) {
		usage()
	} else if err != nil {
		fmt.Fprintf(output, "%s: %v\nrun %[1]s --help for the flags\n", flags.Name(), err)
	}
	return err
}
