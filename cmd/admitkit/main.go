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
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		ending = append(ending, syscall.SIGHUP) // the terminal is closed
	}
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // an error of the write instead; ignored, programs that we start would ignore it too
	s := screen.New()
	var code int
	if screen.Terminal(s.Out) {
		code = run(ctx, s, os.Args[1:])
	} else {
		code = runInto(ctx, s, os.Args[1:])
	}
	stop()
	os.Exit(code)
}
