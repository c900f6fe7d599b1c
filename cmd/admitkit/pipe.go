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

// errUnread is why a command ends of which nobody reads the output any more.
var errUnread = errors.New("the output is closed")

// A pipe is standard output that a reader may close, as head does: that is no error, and ends the command in order.
type pipe struct {
	w      io.Writer
	closed atomic.Bool
	end    context.CancelCauseFunc
}

func (p *pipe) Write(text []byte) (int, error) {
	if p.closed.Load() {
		return len(text), nil
	}
	n, err := p.w.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		p.closed.Store(true)
		p.end(errUnread)
		return len(text), nil
	}
	return n, err
}

// runInto is run for standard output that may be closed: the exit code is of what was found until then.
func runInto(ctx context.Context, s *screen.Screen, args []string) int {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.Out = &pipe{w: s.Out, end: end}
	return run(ctx, s, args)
}
