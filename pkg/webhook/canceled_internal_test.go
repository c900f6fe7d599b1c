// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestBrokenOff has the errors of reading a body. Over HTTP/2 the context ends only after them.
func TestBrokenOff(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0) // by middleware
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
			x := &exchange{client: in.client, http1: in.http1}
			x.ctx.start, x.ctx.budget = time.Now(), time.Hour
			if got := x.outcomeOf(x.brokenOff(in.err)); got != in.want {
				t.Errorf("got %s, want %s", got, in.want)
			}
		})
	}
}

// TestGoneBeforeItEntered has a call that was taken back before its handler ran, as by a client that
// opens and resets streams: it takes no room, and who has some keeps it.
func TestGoneBeforeItEntered(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	g := newGate(&Options{MaxInFlight: 1, MaxInFlightBytes: 1}, nil)
	g.calls.Add(1)
	x := &exchange{client: gone}
	x.ctx.hook, x.ctx.start, x.ctx.budget = &Hook{gate: g}, time.Now(), time.Hour
	err := x.enter(httptest.NewRequestWithContext(gone, http.MethodPost, "/", nil), nil)
	if err == nil || x.outcomeOf(err) != Canceled || x.held || g.calls.Load() != 1 {
		t.Errorf("got %v with %d calls in flight, held %t", err, g.calls.Load(), x.held)
	}
}
