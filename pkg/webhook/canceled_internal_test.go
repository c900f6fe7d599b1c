// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/server"
)

// TestIncompleteBody checks which errors from reading a body count as Canceled: those that mean that the client went
// away. Over HTTP/2 the context of the request ends only after such an error.
func TestIncompleteBody(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0) // set by middleware
	defer cancel()
	for _, in := range []struct {
		reason string
		client context.Context
		http1  bool
		err    error
		want   Outcome
	}{
		{"HTTP/1.1, the connection", gone, true, io.ErrUnexpectedEOF, Canceled},
		{"HTTP/1.1, the text", t.Context(), true, errors.New("malformed chunked encoding"), Failed},
		{"HTTP/1.1, a deadline", late, true, io.ErrUnexpectedEOF, Failed},
		{"HTTP/2, the connection", t.Context(), false, errors.New("client disconnected"), Canceled},
		{"HTTP/2, the stream", t.Context(), false, errors.New("stream error: stream ID 1; CANCEL; received from peer"), Canceled},
		{"HTTP/2, the stream, and it was seen", gone, false, errors.New("stream error: stream ID 1; CANCEL; received from peer"), Canceled},
		{"HTTP/2, too little", t.Context(), false, errors.New("request declared a Content-Length of 5 but only wrote 4 bytes"), Failed},
	} {
		t.Run(in.reason, func(t *testing.T) {
			x := &exchange{client: clientConn{ctx: in.client, http1: in.http1}}
			x.ctx.Start, x.ctx.Budget = time.Now(), time.Hour
			if got := x.outcomeOf(x.incompleteBody(in.err)); got != in.want {
				t.Errorf("got %s, want %s", got, in.want)
			}
		})
	}
}

// TestCanceledCallTakesNoPlace cancels a call before it enters the gate, like a client that opens and resets streams.
// The call must take no slot.
func TestCanceledCallTakesNoPlace(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	h := &host{gate: server.NewGate(1, 1)}
	x := &exchange{client: clientConn{ctx: gone}}
	x.ctx.Start, x.ctx.Budget = time.Now(), time.Hour
	err := x.enter(h)
	if calls, _, _ := h.gate.Calls(); err == nil || x.outcomeOf(err) != Canceled || calls != 0 {
		t.Errorf("got %v with %d calls in flight", err, calls)
	}
}
