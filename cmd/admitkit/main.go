// SPDX-License-Identifier: Apache-2.0

// Admitkit scaffolds, runs, verifies, lints and explains Kubernetes admission webhooks.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

func main() {
	if calledByGoVet(os.Args[1:]) {
		serveGoVet()
	}
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup makes the process ignore it
		ending = append(ending, syscall.SIGHUP) // sent when the terminal is closed
	}
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	// A write to a closed pipe must return an error instead of ending the process. Ignoring SIGPIPE would do that too,
	// but the programs started from here would inherit it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	s := screen.New()
	var code int
	if screen.Terminal(s.Out) {
		code = run(ctx, s, os.Args[1:])
	} else {
		code = runIntoPipe(ctx, s, os.Args[1:])
	}
	stop()
	os.Exit(code)
}
