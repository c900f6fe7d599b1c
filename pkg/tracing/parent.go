// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// parent returns ctx with the parent of the call's span, or without a parent. It also returns the spans to
// link, if the call's span is not their child.
func (t *tracer) parent(ctx context.Context, headers http.Header) (context.Context, []trace.Link) {
	own := trace.SpanContextFromContext(ctx)
	if own.IsValid() && own.Equal(t.bases.of(ctx)) {
		own = trace.SpanContext{}
		ctx = trace.ContextWithSpanContext(ctx, own)
	}
	sent := t.opts.Propagator.Extract(ctx, propagation.HeaderCarrier(headers))
	switch {
	case !own.IsValid():
		return sent, nil
	case trace.SpanContextFromContext(sent).TraceID() == own.TraceID(): // also when none was sent
		return ctx, nil
	default: // middleware that reads other headers, or ignores them
		return sent, []trace.Link{{SpanContext: own}}
	}
}

// bases holds the spans in the base contexts of servers. A call must not continue them, since such
// a trace lasts as long as the process.
type bases struct {
	mu    sync.Mutex
	known map[*http.Server]trace.SpanContext // never shrinks, because programs have few servers
}

// of returns the base span of the server of a call.
func (b *bases) of(ctx context.Context) trace.SpanContext {
	server, _ := ctx.Value(http.ServerContextKey).(*http.Server)
	if server == nil || server.BaseContext == nil {
		return trace.SpanContext{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	span, ok := b.known[server]
	if !ok {
		span = baseSpan(server)
		if b.known == nil {
			b.known = map[*http.Server]trace.SpanContext{}
		}
		b.known[server] = span
	}
	return span
}

// baseSpan calls BaseContext of the server again, to get the span that all its calls inherit.
func baseSpan(server *http.Server) (span trace.SpanContext) {
	defer func() { _ = recover() }() // the function may expect another type of listener
	return trace.SpanContextFromContext(server.BaseContext(nowhere{}))
}

// nowhere is a listener without connections.
type nowhere struct{}

func (nowhere) Accept() (net.Conn, error) { return nil, errors.New("no listener") }
func (nowhere) Close() error              { return nil }
func (nowhere) Addr() net.Addr            { return &net.TCPAddr{} }
