// SPDX-License-Identifier: Apache-2.0

// Package program has the common part of the example programs: flags, certificates, the installation of the hooks, metrics,
// logs, and a graceful stop on SIGTERM. Copy it together with the example.
//
// There are two ways to run a program. With a certificate in files, such as cert-manager
// mounts, the configurations of the hooks are YAML that somebody applies, and the program needs
// no rights. With --self-managed the program makes its certificates and installs its hooks
// itself, with the rights that --print-rbac prints.
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

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Program serves hooks until it is stopped, or prints their configurations.
type Program struct {
	// Name is the name of the program and of its configuration objects.
	Name string
	// Flags adds flags of the program's own. May be nil.
	Flags func(*flag.FlagSet)
	// Hooks returns the hooks, after the flags have been read.
	Hooks func() ([]*webhook.Hook, error)
	// Listener, unless nil, is listened on instead of --addr, by tests.
	Listener net.Listener

	reload time.Duration // how often files are read, the default when zero
}

// Main runs the program with the arguments and signals of the process. It exits with 0 on success, 2 if the flags are wrong, and 1 on any
// other error.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	var usage *usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return
	case errors.As(err, &usage): // the flag package has said what is wrong
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
	os.Exit(1)
}

type usageError struct{ error }

func (u *usageError) Unwrap() error { return u.error }

// options are the flags. Each part of the program has its own.
type options struct {
	name     string
	logLevel string

	printConfiguration, printRBAC, uninstall bool

	where   where
	files   files
	managed managed
	serving serving
	clients clients
}

// Run runs the program until ctx ends. Logs go to stderr.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := p.parse(args, stderr)
	if err != nil {
		return err
	}
	hooks, err := p.Hooks()
	if err != nil {
		return err
	}
	switch {
	case o.printConfiguration:
		return o.where.print(stdout, o.name, hooks)
	case o.printRBAC:
		return o.writeRBAC(stdout, hooks)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	if o.uninstall {
		return o.remove(ctx, logger, hooks)
	}
	return o.serve(ctx, p.Listener, logger, hooks)
}

func (p Program) parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{name: p.Name, files: files{interval: p.reload}}
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.logLevel, "log-level", "info", "`level` of the log: error, info, or debug, which shows denials")
	flags.BoolVar(&o.printConfiguration, "print-configuration", false, "print the webhook configurations as YAML and exit")
	flags.BoolVar(&o.printRBAC, "print-rbac", false, "print the rights that --self-managed needs as YAML and exit")
	flags.BoolVar(&o.uninstall, "uninstall", false, "take away what --self-managed installed, wait until the API server calls no hook any more, and exit")
	o.where.addFlags(flags, p.Name)
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
		return nil, fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
	}
	if (o.printRBAC || o.uninstall) && !o.managed.on {
		return nil, errors.New("--print-rbac and --uninstall are about what --self-managed does: add it, with the other flags of the program that runs")
	}
	return o, nil
}
