// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

// errOutputClosed is the cause of a context that ends because standard output was closed.
var errOutputClosed = errors.New("the output is closed")

// A pipe writes to standard output, whose reader may close it, as head does. This is not an error: the pipe cancels the
// command's context and drops the rest of the output.
type pipe struct {
	w      io.Writer
	closed atomic.Bool
	cancel context.CancelCauseFunc
}

func (p *pipe) Write(text []byte) (int, error) {
	if p.closed.Load() {
		return len(text), nil
	}
	n, err := p.w.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		p.closed.Store(true)
		p.cancel(errOutputClosed)
		return len(text), nil
	}
	return n, err
}

// runIntoPipe calls run with a standard output that its reader may close early. In that case, the exit code reflects
// the findings so far.
func runIntoPipe(ctx context.Context, s *screen.Screen, args []string) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Out = &pipe{w: s.Out, cancel: cancel}
	return run(ctx, s, args)
}
