// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/tracing"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

func mutating() *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "a.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))},
		func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
}

func validating() *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "b.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))},
		func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
}

// recorded returns a provider and a recorder of its spans.
func recorded() (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample()))), spans
}

func request(headers ...string) *http.Request {
	r := &http.Request{Header: http.Header{}}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// one returns the only span that has ended.
func one(t *testing.T, spans *tracetest.SpanRecorder) sdktrace.ReadOnlySpan {
	t.Helper()
	ended := spans.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans have ended, want 1", len(ended))
	}
	return ended[0]
}

func attributes(span sdktrace.ReadOnlySpan) map[string]any {
	all := map[string]any{}
	for _, a := range span.Attributes() {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}

func TestSpan(t *testing.T) {
	known := webhook.Observation{
		UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Operation: admissionv1.Update, Namespace: "shop", Name: "n4me", DryRun: true, Code: 200, BodyBytes: 2000,
	}
	about := map[string]any{
		"admission.uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "admission.kind": "apps/v1, Kind=Deployment", "admission.operation": "UPDATE",
		"k8s.namespace.name": "shop", "admission.dry_run": true, "admission.code": int64(200), "admission.body.size": int64(2000),
	}
	rows := []struct {
		why    string
		hook   *webhook.Hook
		change func(*webhook.Observation)
		want   map[string]any // added to about, unless it is nil
		status sdktrace.Status
	}{
		{"allowed", validating(), func(c *webhook.Observation) { c.Outcome = webhook.Allowed }, map[string]any{"admission.outcome": "allowed"}, sdktrace.Status{}},
		{
			"mutated", mutating(), func(c *webhook.Observation) { c.Outcome, c.PatchBytes, c.PatchOperations = webhook.Mutated, 120, 3 },
			map[string]any{"admission.outcome": "mutated", "admission.patch.size": int64(120), "admission.patch.operations": int64(3)}, sdktrace.Status{},
		},
		{"denied: an answer like any other", validating(), func(c *webhook.Observation) { c.Outcome, c.Code = webhook.Denied, 422 }, map[string]any{"admission.outcome": "denied", "admission.code": int64(422)}, sdktrace.Status{}},
		{
			"an object in no namespace", validating(), func(c *webhook.Observation) { c.Outcome, c.Namespace = webhook.Allowed, "" },
			map[string]any{"admission.outcome": "allowed", "k8s.namespace.name": nil}, sdktrace.Status{},
		},
		{
			"failed", validating(), func(c *webhook.Observation) {
				c.Outcome, c.Code, c.Err = webhook.Failed, 500, errors.New("token s3cret is wrong")
			},
			map[string]any{"admission.outcome": "failed", "admission.code": int64(500), "error.type": "failed"},
			sdktrace.Status{Code: codes.Error, Description: "failed with code 500; the log has the reason"},
		},
		{
			"panicked", validating(), func(c *webhook.Observation) { c.Outcome, c.Code = webhook.Panicked, 500 },
			map[string]any{"admission.outcome": "panicked", "admission.code": int64(500), "error.type": "panicked"},
			sdktrace.Status{Code: codes.Error, Description: "panicked with code 500; the log has the reason"},
		},
		{
			"timed out", validating(), func(c *webhook.Observation) { c.Outcome, c.Code = webhook.TimedOut, 504 },
			map[string]any{"admission.outcome": "timed_out", "admission.code": int64(504), "error.type": "timed_out"},
			sdktrace.Status{Code: codes.Error, Description: "timed_out with code 504; the log has the reason"},
		},
		{
			"canceled: the client is gone", validating(), func(c *webhook.Observation) { c.Outcome, c.Code = webhook.Canceled, 503 },
			map[string]any{"admission.outcome": "canceled", "admission.code": int64(503)}, sdktrace.Status{},
		},
		{
			"shed: nothing was read", validating(), func(c *webhook.Observation) { *c = webhook.Observation{Outcome: webhook.Shed, Code: 429} }, nil,
			sdktrace.Status{Code: codes.Error, Description: "shed with code 429; the log has the reason"},
		},
		{
			"refused: nothing was read", validating(), func(c *webhook.Observation) { *c = webhook.Observation{Outcome: webhook.Refused, Code: 401} }, nil,
			sdktrace.Status{Code: codes.Error, Description: "refused with code 401; the log has the reason"},
		},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			tp, spans := recorded()
			call := known
			row.change(&call)
			_, end := tracing.New(tp, tracing.Options{}).Begin(t.Context(), row.hook, request())
			end(&call)

			span, kind := one(t, spans), "validating"
			if row.hook.Mutating() {
				kind = "mutating"
			}
			want := map[string]any{"admission.webhook": row.hook.Name(), "admission.type": kind}
			if row.want == nil {
				maps.Copy(want, map[string]any{"admission.outcome": string(call.Outcome), "error.type": string(call.Outcome), "admission.code": int64(call.Code)})
			} else {
				maps.Copy(want, about)
				maps.Copy(want, row.want)
				maps.DeleteFunc(want, func(_ string, value any) bool { return value == nil })
			}
			if got := attributes(span); !reflect.DeepEqual(got, want) {
				t.Errorf("attributes\n got %v\nwant %v", got, want)
			}
			if span.Status() != row.status {
				t.Errorf("status %+v, want %+v", span.Status(), row.status)
			}
			if span.Name() != row.hook.Name() || span.SpanKind() != trace.SpanKindServer || len(span.Events()) > 0 {
				t.Errorf("span %q of kind %s with events %v", span.Name(), span.SpanKind(), span.Events())
			}
			if text := fmt.Sprint(attributes(span), span.Status()); strings.Contains(text, "s3cret") || strings.Contains(text, "n4me") {
				t.Errorf("the span contains a part of the object: %s", text)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	rows := []struct {
		why  string
		err  error
		want string
	}{
		{"a text", errors.New("the database is down"), "the database is down"},
		{"none", nil, "failed with code 500; the log has the reason"},
		{"a long one, cut within a rune", errors.New(strings.Repeat("a", 1023) + "ü"), strings.Repeat("a", 1023) + "…"},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			tp, spans := recorded()
			_, end := tracing.New(tp, tracing.Options{ErrorText: true}).Begin(t.Context(), validating(), request())
			end(&webhook.Observation{Outcome: webhook.Failed, Code: 500, Err: row.err})
			if got := one(t, spans).Status().Description; got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestParent(t *testing.T) {
	rows := []struct {
		why     string
		opts    tracing.Options
		headers []string
		parent  string // empty: the span begins a trace
		sampled bool
	}{
		{"none", tracing.Options{}, nil, "", true},
		{"the API server's", tracing.Options{}, []string{"Traceparent", traceparent}, "0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331", true},
		{"one that is not sampled", tracing.Options{}, []string{"Traceparent", unsampled}, "0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331", false},
		{"nonsense", tracing.Options{}, []string{"Traceparent", "00-0af7651916cd43dd-01"}, "", true},
		{"a propagator that reads other headers", tracing.Options{Propagator: propagation.Baggage{}}, []string{"Traceparent", traceparent}, "", true},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			tp, spans := recorded()
			ctx, end := tracing.New(tp, row.opts).Begin(t.Context(), validating(), request(row.headers...))
			inHandler := trace.SpanContextFromContext(ctx)
			if end(&webhook.Observation{Outcome: webhook.Allowed}); inHandler.IsSampled() != row.sampled {
				t.Errorf("sampled: %v", inHandler.IsSampled())
			}
			if got, want := tracing.TraceID(ctx), inHandler.TraceID().String(); row.sampled != (got == want) || !row.sampled && got != "" {
				t.Errorf("TraceID is %q, that of the span %s", got, want)
			}
			if !row.sampled {
				if len(spans.Ended()) > 0 || inHandler.TraceID().String() != strings.Split(row.parent, "/")[0] {
					t.Errorf("spans %v; the handler continues %s", spans.Ended(), inHandler.TraceID())
				}
				return
			}
			span := one(t, spans)
			if got := span.Parent(); row.parent == "" && got.IsValid() || row.parent != "" && got.TraceID().String()+"/"+got.SpanID().String() != row.parent {
				t.Errorf("the parent is %v", got)
			}
			if !inHandler.Equal(span.SpanContext()) {
				t.Errorf("the handler sees %v, not the span %v", inHandler, span.SpanContext())
			}
		})
	}
}

// TestStatusSetByTheHandlerStays checks that the observer keeps a status that the handler has set on its span. The
// middleware of Knative, in contrast, sets the status of denials to Ok.
func TestStatusSetByTheHandlerStays(t *testing.T) {
	for _, outcome := range []webhook.Outcome{webhook.Allowed, webhook.Mutated, webhook.Denied} {
		tp, spans := recorded()
		ctx, end := tracing.New(tp, tracing.Options{}).Begin(t.Context(), mutating(), request())
		trace.SpanFromContext(ctx).SetStatus(codes.Error, "the cache is cold")
		end(&webhook.Observation{Outcome: outcome})
		if got, want := one(t, spans).Status(), (sdktrace.Status{Code: codes.Error, Description: "the cache is cold"}); got != want {
			t.Errorf("%s: status %+v, want %+v", outcome, got, want)
		}
	}
}

func TestWithoutAProvider(t *testing.T) {
	ctx, end := tracing.New(nil, tracing.Options{}).Begin(t.Context(), validating(), request("Traceparent", traceparent))
	end(&webhook.Observation{Outcome: webhook.Failed})
	if got := trace.SpanContextFromContext(ctx).SpanID().String(); got != "b7ad6b7169203331" {
		t.Errorf("the handler does not continue the caller's span, but %s", got)
	}
}

// TestSamplersSeeTheHook checks which attributes a sampler sees. It decides before the request is read, so it sees only
// the attributes of the hook.
func TestSamplersSeeTheHook(t *testing.T) {
	sampler := &recordingSampler{}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
	_, end := tracing.New(tp, tracing.Options{}).Begin(t.Context(), mutating(), request())
	end(&webhook.Observation{Outcome: webhook.Allowed})
	if want := "a.example.com server [admission.webhook=a.example.com admission.type=mutating]"; sampler.saw != want {
		t.Errorf("the sampler saw %s, want %s", sampler.saw, want)
	}
}

type recordingSampler struct{ saw string }

func (c *recordingSampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	var all []string
	for _, a := range p.Attributes {
		all = append(all, string(a.Key)+"="+a.Value.AsString())
	}
	c.saw = fmt.Sprintf("%s %s %s", p.Name, p.Kind, all)
	return sdktrace.SamplingResult{}
}

func (*recordingSampler) Description() string { return "recordingSampler" }

func TestLongValuesAreClipped(t *testing.T) {
	tp, spans := recorded()
	_, end := tracing.New(tp, tracing.Options{}).Begin(t.Context(), validating(), request())
	long := strings.Repeat("x", 1<<20)
	end(&webhook.Observation{UID: "u", Outcome: webhook.Denied, Namespace: long, Operation: admissionv1.Operation(long), Kind: metav1.GroupVersionKind{Kind: long}})
	for key, value := range attributes(one(t, spans)) {
		if text, ok := value.(string); ok && len(text) > 300 {
			t.Errorf("%s has %d bytes", key, len(text))
		}
	}
}

// TestPageNamesEveryAttribute checks that docs/monitoring/README.md lists exactly the attributes that spans have.
func TestPageNamesEveryAttribute(t *testing.T) {
	text, err := os.ReadFile("../../docs/monitoring/README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]any{}
	for _, name := range regexp.MustCompile("`((?:admission|k8s|error)\\.[a-z._]+)`").FindAllStringSubmatch(string(text), -1) {
		named[name[1]] = nil
	}
	made := map[string]any{}
	for _, outcome := range []webhook.Outcome{webhook.Mutated, webhook.Failed} {
		tp, spans := recorded()
		_, end := tracing.New(tp, tracing.Options{}).Begin(t.Context(), mutating(), request())
		end(&webhook.Observation{UID: "1", Namespace: "shop", Outcome: outcome, BodyBytes: 1})
		maps.Copy(made, attributes(one(t, spans)))
	}
	if got, want := slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(made)); !slices.Equal(got, want) {
		t.Errorf("the page has\n%q\nspans have\n%q", got, want)
	}
}

func BenchmarkCall(b *testing.B) {
	sdk := func(s sdktrace.Sampler) trace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithSampler(s))
	}
	rows := map[string]trace.TracerProvider{"none": nil, "not sampled": sdk(sdktrace.NeverSample()), "sampled": sdk(sdktrace.AlwaysSample())}
	for name, tp := range rows {
		b.Run(name, func(b *testing.B) {
			tracer, hook, r, ctx := tracing.New(tp, tracing.Options{}), mutating(), request("Traceparent", unsampled), b.Context()
			call := webhook.Observation{UID: "705ab4f5", Namespace: "shop", Outcome: webhook.Mutated, PatchOperations: 1}
			b.ReportAllocs()
			for b.Loop() {
				_, end := tracer.Begin(ctx, hook, r)
				end(&call)
			}
		})
	}
}
