// SPDX-License-Identifier: Apache-2.0

// Package program is what the example programs have in common: flags, a certificate that is
// read again when its files change, a log, an end on SIGTERM. Copy it with the example.
package program

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Program serves hooks until it is told to stop, or prints how to register them.
type Program struct {
	// Name is the name of the program and of its configuration objects.
	Name string
	// Flags adds flags of the program's own. May be nil.
	Flags func(*flag.FlagSet)
	// Hooks returns the hooks, after the flags have been read.
	Hooks func() ([]*webhook.Hook, error)
}

// Main runs the program with the arguments and signals of the process, and exits: 0 when it
// did what it should, 2 when the flags are wrong, 1 when anything else is.
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

type options struct {
	addr, certFile, keyFile, logLevel string
	shutdownDelay                     time.Duration

	print        bool
	registration registration
}

// Run runs the program until ctx is done. Logs go to stderr.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.addr, "addr", ":9443", "`address` to listen on")
	flags.StringVar(&o.certFile, "tls-cert-file", "/tls/tls.crt", "`file` with the serving certificate, read again when it changes")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "/tls/tls.key", "`file` with the key of the certificate")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 10*time.Second, "`time` to go on as before when told to stop, until the cluster knows; 0 for none")
	flags.StringVar(&o.logLevel, "log-level", "info", "`level` of the log: error, info, or debug, which shows denials")
	flags.BoolVar(&o.print, "print-configuration", false, "print the webhook configurations as YAML and exit")
	o.registration.addFlags(flags, p.Name)
	if p.Flags != nil {
		p.Flags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return &usageError{err}
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
	}
	hooks, err := p.Hooks()
	if err != nil {
		return err
	}
	if o.print {
		return o.registration.print(stdout, p.Name, hooks)
	}
	return o.serve(ctx, stderr, hooks)
}

func (o options) serve(ctx context.Context, stderr io.Writer, hooks []*webhook.Hook) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	ctrllog.SetLogger(logger) // of the certificate watcher
	certificate, err := certwatcher.New(o.certFile, o.keyFile)
	if err != nil {
		return fmt.Errorf("cannot read the serving certificate: %w", err)
	}
	server := webhook.NewServer(webhook.Options{
		Addr:      o.addr,
		TLSConfig: &tls.Config{GetCertificate: certificate.GetCertificate},
		Logger:    logger,

		ShutdownDelay: cmp.Or(o.shutdownDelay, -1), // its zero is a default
	}, hooks...)
	group, ctx := errgroup.WithContext(ctx) // when one ends, so does the other
	group.Go(func() error { return certificate.Start(ctx) })
	group.Go(func() error { return server.Start(ctx) })
	return group.Wait()
}
