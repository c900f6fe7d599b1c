// SPDX-License-Identifier: Apache-2.0

// Package tracing records an OpenTelemetry span for each call of a hook. The span continues the
// trace of the API server, which sends the header traceparent. The handler's context holds the
// span, so that calls of the handler continue the trace.
//
//	tracer := tracing.New(provider, tracing.Options{})
//	server := webhook.NewServer(webhook.Options{Observers: []webhook.Observer{tracer}, …}, hooks...)
//
// A span identifies the reviewed object only by kind, operation and namespace. It has no object names, no users and no
// content of the object. Its status is an error only for failures to decide. A denial has the attribute
// admission.outcome instead. Calls that the client canceled have a span, too.
//
// The headers name the trace of a call. A span that middleware has put into the context is the
// parent if it belongs to that trace, or if the headers name none. Otherwise it is linked. A span
// in the context of Server.Start is never the parent.
//
// The package needs only the API of OpenTelemetry, not its SDK. The provider decides about sampling
// and export.
package tracing

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// The attributes of a span. An attribute whose value is unknown is left out.
const (
	webhookKey         = attribute.Key("admission.webhook")    // the name in the registration
	typeKey            = attribute.Key("admission.type")       // mutating or validating
	outcomeKey         = attribute.Key("admission.outcome")    // a webhook.Outcome
	codeKey            = attribute.Key("admission.code")       // of the answer or of the denial
	uidKey             = attribute.Key("admission.uid")        // of the AdmissionRequest, as in the log
	kindKey            = attribute.Key("admission.kind")       // as in "apps/v1, Kind=Deployment"
	operationKey       = attribute.Key("admission.operation")  // CREATE, UPDATE, DELETE or CONNECT
	dryRunKey          = attribute.Key("admission.dry_run")    // a bool
	namespaceKey       = attribute.Key("k8s.namespace.name")   // of the object
	bodySizeKey        = attribute.Key("admission.body.size")  // in bytes
	patchSizeKey       = attribute.Key("admission.patch.size") // in bytes, of a call that was mutated
	patchOperationsKey = attribute.Key("admission.patch.operations")
	errorTypeKey       = attribute.Key("error.type") // the outcome again, if it is a failure
)

// Options configure [New]. The zero value works.
type Options struct {
	// Propagator reads the trace to continue from the headers of a call. Nil means W3C's
	// traceparent, which the API server sends.
	Propagator propagation.TextMapPropagator
	// ErrorText adds the error of a failed call to the description of the span's status. The error
	// of a handler may quote the object, so parts of the object may be exported.
	ErrorText bool
}

// New returns an observer that records spans with tp. If tp is nil, it records nothing. List it before other observers that
// need the span.
func New(tp trace.TracerProvider, o Options) webhook.Observer {
	if tp == nil {
		tp = noop.NewTracerProvider()
	}
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	return &tracer{tracer: tp.Tracer("github.com/admitkit/admitkit/pkg/tracing"), opts: o}
}

// TraceID returns the id of the trace in ctx, or "" if there is none or it is not sampled. It fits
// Options.TraceID of package metrics.
func TraceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() && c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}

type tracer struct {
	tracer trace.Tracer
	opts   Options
	bases  bases
}

// Begin implements [webhook.Observer].
func (t *tracer) Begin(ctx context.Context, h *webhook.Hook, r *http.Request) (context.Context, func(*webhook.Observation)) {
	ctx, links := t.parent(ctx, r.Header)
	ctx, span := t.tracer.Start(ctx, h.Name(), trace.WithSpanKind(trace.SpanKindServer), trace.WithLinks(links...),
		trace.WithAttributes(webhookKey.String(h.Name()), typeKey.String(typeOf(h)))) // samplers see these
	return ctx, func(c *webhook.Observation) { t.end(span, c) }
}

func typeOf(h *webhook.Hook) string {
	if h.Mutating() {
		return "mutating"
	}
	return "validating"
}

// end sets the attributes of the span and ends it. It sets the status only for failures to decide.
func (t *tracer) end(span trace.Span, c *webhook.Observation) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attributes(c)...)
	switch c.Outcome {
	case webhook.Allowed, webhook.Mutated, webhook.Denied, webhook.Canceled:
	default:
		span.SetAttributes(errorTypeKey.String(string(c.Outcome)))
		span.SetStatus(codes.Error, t.describe(c))
	}
}

// maxValue is the length to which attribute values are cut. Valid kinds, UIDs and namespaces are shorter, but a client
// may send longer values.
const maxValue = 256

// attributes returns the attributes of a call, except those whose values are unknown.
func attributes(c *webhook.Observation) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 12), outcomeKey.String(string(c.Outcome)), codeKey.Int(int(c.Code)))
	if c.UID != "" {
		all = append(all, uidKey.String(clip(string(c.UID), maxValue)), kindKey.String(clip(c.Kind.String(), maxValue)),
			operationKey.String(clip(string(c.Operation), maxValue)), dryRunKey.Bool(c.DryRun))
	}
	if c.Namespace != "" {
		all = append(all, namespaceKey.String(clip(c.Namespace, maxValue)))
	}
	if c.BodyBytes > 0 {
		all = append(all, bodySizeKey.Int(c.BodyBytes))
	}
	if c.Outcome == webhook.Mutated {
		all = append(all, patchSizeKey.Int(c.PatchBytes), patchOperationsKey.Int(c.PatchOperations))
	}
	return all
}

// describe returns the status description of a failed call, without the error unless ErrorText is
// set.
func (t *tracer) describe(c *webhook.Observation) string {
	if t.opts.ErrorText && c.Err != nil {
		return clip(c.Err.Error(), 1024)
	}
	return fmt.Sprintf("%s with code %d; the log has the reason", c.Outcome, c.Code)
}

// clip shortens text that a client chose.
func clip(s string, limit int) string { return strings.ToValidUTF8(textutil.Clip(s, limit), "") }
