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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, screen.New(), os.Args[1:])
	stop()
	os.Exit(code)
}
