// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/tracing"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// FuzzSpan records spans of random calls. The attributes of each span must be short and valid UTF-8, and its trace id
// must be valid.
func FuzzSpan(f *testing.F) {
	f.Add(traceparent, "vendor=1", "705ab4f5", "Pod", "CREATE", "shop", "the database is down")
	f.Add(unsampled, "", "", "", "", "", "")
	f.Add("00-00000000000000000000000000000000-0000000000000000-01", "=,=", "\xff", "\xc3", "\x00", "é", "\xffno")
	f.Fuzz(func(t *testing.T, parent, state, uid, kind, operation, namespace, failure string) {
		for _, reader := range []propagation.TextMapPropagator{nil, propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})} {
			tp, spans := recorded()
			ctx, end := tracing.New(tp, tracing.Options{Propagator: reader, ErrorText: true}).
				Begin(t.Context(), validating(), request("Traceparent", parent, "Tracestate", state, "Baggage", state))
			end(&webhook.Observation{
				UID: types.UID(uid), Kind: metav1.GroupVersionKind{Group: kind, Version: kind, Kind: kind}, Operation: admissionv1.Operation(operation),
				Namespace: namespace, Outcome: webhook.Failed, Code: 500, Err: errors.New(failure),
			})
			if id := tracing.TraceID(ctx); id != "" && len(id) != 32 {
				t.Errorf("TraceID %q", id)
			}
			for _, span := range spans.Ended() {
				for key, value := range attributes(span) {
					if text, ok := value.(string); ok && (!utf8.ValidString(text) || len(text) > 300) {
						t.Errorf("%s is %q", key, text)
					}
				}
				if text := span.Status().Description; !utf8.ValidString(text) || len(text) > 1100 {
					t.Errorf("the status says %q", text)
				}
			}
		}
	})
}
