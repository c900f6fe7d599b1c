// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/tracing"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestParentBesideTheSpanOfMiddleware calls a hook in middleware that has put a span into the context. That span must
// be the parent. If the headers name another trace, it must be linked instead.
func TestParentBesideTheSpanOfMiddleware(t *testing.T) {
	const sent = "0af7651916cd43dd8448eb211c80319c"
	for _, in := range []struct {
		why     string
		reads   bool // the middleware continues the trace in the headers
		headers []string
		linked  bool // the parent is the span in the headers, and the middleware's span is linked
	}{
		{"both read the same headers", true, []string{"Traceparent", traceparent}, false},
		{"nothing was sent", false, nil, false},
		{"an invalid header was sent", false, []string{"Traceparent", "00-0af7651916cd43dd-01"}, false},
		{"the middleware does not read what was sent", false, []string{"Traceparent", traceparent}, true},
	} {
		t.Run(in.why, func(t *testing.T) {
			tp, spans := recorded()
			r, ctx := request(in.headers...), t.Context()
			if in.reads {
				ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
					TraceID: must(trace.TraceIDFromHex(sent)), SpanID: must(trace.SpanIDFromHex("b7ad6b7169203331")), TraceFlags: trace.FlagsSampled,
				}))
			}
			ctx, outer := tp.Tracer("middleware").Start(ctx, "POST")
			_, end := tracing.New(tp, tracing.Options{}).Begin(ctx, validating(), r)
			end(&webhook.Observation{Outcome: webhook.Allowed})
			span := one(t, spans)
			switch parent, links := span.Parent(), span.Links(); {
			case !in.linked && (!parent.Equal(outer.SpanContext()) || len(links) > 0):
				t.Errorf("the parent is %v with links %v, want the span of the middleware", parent, links)
			case in.linked && (parent.TraceID().String() != sent || !parent.IsRemote() || len(links) != 1 || !links[0].SpanContext.Equal(outer.SpanContext())):
				t.Errorf("the parent is %v with links %v, want what was sent, and a link to the middleware", parent, links)
			}
		})
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestTheSpanOfStartIsNotTheParent passes a context with a span to Server.Start. This span is in the context of every
// call, but must not be the parent of the call's span.
func TestTheSpanOfStartIsNotTheParent(t *testing.T) {
	tp, spans := recorded()
	start, starting := tp.Tracer("main").Start(t.Context(), "start")
	hook := mutating()
	url, client := serve(start, t, webhook.Options{Observers: []webhook.Observer{tracing.New(tp, tracing.Options{})}}, hook)
	for range 2 {
		post(t, client, url+hook.Path())
		post(t, client, url+hook.Path(), "Traceparent", traceparent)
	}
	ended := spans.Ended()
	if len(ended) != 4 {
		t.Fatalf("%d spans, want 4", len(ended))
	}
	for i, span := range ended {
		parent := span.Parent()
		if span.SpanContext().TraceID() == starting.SpanContext().TraceID() || len(span.Links()) > 0 {
			t.Errorf("call %d is part of the start", i)
		}
		if parent.IsValid() != (i%2 == 1) || i%2 == 1 && parent.SpanID().String() != "b7ad6b7169203331" {
			t.Errorf("the parent of call %d is %v", i, parent)
		}
	}
	if ended[0].SpanContext().TraceID() == ended[2].SpanContext().TraceID() {
		t.Error("two calls are part of one trace, but no client sent one")
	}
}

// TestSpanOfAnotherServersBaseContext serves a hook with an http.Server whose BaseContext may hold a span. This span
// must not be the parent of a call's span. The only exception is a BaseContext that needs its own type of listener, so
// that its span cannot be found.
func TestSpanOfAnotherServersBaseContext(t *testing.T) {
	tp, spans := recorded()
	start, starting := tp.Tracer("main").Start(t.Context(), "start")
	middleware := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, span := tp.Tracer("middleware").Start(r.Context(), "POST", trace.WithNewRoot())
			defer span.End()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	for _, in := range []struct {
		why    string
		base   func(net.Listener) context.Context
		around func(http.Handler) http.Handler
		parent string // name of the parent span
	}{
		{"no base", nil, nil, ""},
		{"a base with a span", func(net.Listener) context.Context { return start }, nil, ""},
		{"a base without one", func(net.Listener) context.Context { return t.Context() }, middleware, "POST"},
		{"a base with a span, and middleware", func(net.Listener) context.Context { return start }, middleware, "POST"},
		{"a base that looks at the listener", func(l net.Listener) context.Context { return context.WithValue(start, new(int), l.Addr().String()) }, nil, ""},
		{"a base that needs its own listener type", func(l net.Listener) context.Context { _ = l.(*net.TCPListener); return start }, nil, "start"},
	} {
		t.Run(in.why, func(t *testing.T) {
			hook := mutating().WithObserver(tracing.New(tp, tracing.Options{}))
			var handler http.Handler = hook
			if in.around != nil {
				handler = in.around(hook)
			}
			server := httptest.NewUnstartedServer(handler)
			server.Config.BaseContext = in.base
			server.Start()
			defer server.Close()
			before := len(spans.Ended())
			post(t, server.Client(), server.URL+hook.Path())
			server.Close() // middleware ends after the answer
			names := map[trace.SpanID]string{starting.SpanContext().SpanID(): "start"}
			var span sdktrace.ReadOnlySpan
			for _, s := range spans.Ended()[before:] {
				if names[s.SpanContext().SpanID()] = s.Name(); s.Name() == hook.Name() {
					span = s
				}
			}
			if got := names[span.Parent().SpanID()]; got != in.parent || span.Parent().IsValid() != (in.parent != "") {
				t.Errorf("the parent is %q %v, want %q", got, span.Parent(), in.parent)
			}
		})
	}
}

// serve runs a webhook.Server with the context ctx until the test ends.
func serve(ctx context.Context, t *testing.T, o webhook.Options, hooks ...*webhook.Hook) (url string, client *http.Client) {
	t.Helper()
	ca := must(devcert.NewCA())
	o.TLSConfig, o.Addr, o.ShutdownDelay, o.Logger = must(ca.Serving("127.0.0.1")), "127.0.0.1:0", -1, logr.Discard()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	ctx, stop := context.WithCancel(ctx)
	server, ended := webhook.NewServer(o, hooks...), make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "https://" + must(server.Addr(t.Context())).String(), &http.Client{Transport: transport}
}

// post sends a body that no hook can decode. Such a call has a span, too.
func post(t *testing.T, client *http.Client, url string, headers ...string) {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte("{}"))))
	r.Header = request(headers...).Header
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
}
