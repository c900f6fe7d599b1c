// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/tracing"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
)

// traced is a client transport that adds a traceparent header to each request.
type traced struct {
	next        http.RoundTripper
	traceparent string
}

func (t traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", t.traceparent)
	return t.next.RoundTrip(r)
}

// tracedClient returns a client whose requests have the traceparent header.
func tracedClient(c *rest.Config, traceparent string) *kubernetes.Clientset {
	GinkgoHelper()
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return traced{next, traceparent} })
	client, err := kubernetes.NewForConfig(c)
	Expect(err).NotTo(HaveOccurred())
	return client
}

// observed has a hook that decides by the name of the object, and records its metrics and spans.
type observed struct {
	hook     *webhook.Hook
	spans    *tracetest.SpanRecorder
	registry *prometheus.Registry

	mu       sync.Mutex
	contexts map[string]trace.SpanContext // in the handler, by the name of the object
}

func newObserved(name string, selector *metav1.LabelSelector) *observed {
	GinkgoHelper()
	o := &observed{spans: tracetest.NewSpanRecorder(), registry: prometheus.NewRegistry(), contexts: map[string]trace.SpanContext{}}
	counted, err := metrics.New(o.registry, metrics.Options{TraceID: tracing.TraceID})
	Expect(err).NotTo(HaveOccurred())
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans))
	o.hook = webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: name, NamespaceSelector: selector, Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
		FailurePolicy: new(admissionregistrationv1.Ignore),
	}, func(ctx context.Context, req *webhook.Request[corev1.ConfigMap]) error {
		o.mu.Lock()
		o.contexts[req.Name] = trace.SpanContextFromContext(ctx)
		o.mu.Unlock()
		switch req.Name {
		case "mutated":
			req.Object.Data = map[string]string{"seen": "yes"}
		case "denied":
			return webhook.Deny("not this one")
		case "failed":
			return errors.New("the database is down")
		case "panicked":
			panic("oh no")
		}
		return nil
	}).WithObserver(tracing.New(provider, tracing.Options{}), counted)
	return o
}

// spanOf returns the span of the call for an object.
func (o *observed) spanOf(name string) sdktrace.ReadOnlySpan {
	GinkgoHelper()
	o.mu.Lock()
	want := o.contexts[name].SpanID()
	o.mu.Unlock()
	for _, span := range o.spans.Ended() {
		if span.SpanContext().SpanID() == want {
			return span
		}
	}
	Fail("there is no span of the call for the object " + name)
	return nil
}

func attributesOf(span sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range span.Attributes() {
		all[string(a.Key)] = a.Value.Emit()
	}
	return all
}

// counts returns the number of calls by outcome, without zeros.
func (o *observed) counts() map[string]float64 {
	GinkgoHelper()
	families, err := o.registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "admitkit_calls_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if n := metric.GetCounter().GetValue(); label.GetName() == "outcome" && n > 0 {
					counts[label.GetValue()] = n
				}
			}
		}
	}
	return counts
}

var _ = Describe("observers", func() {
	var (
		ns string
		o  *observed
	)
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx)
		o = newObserved("watched.example.com", only(ns))
	})

	It("record the outcome of each call of the API server", func(ctx context.Context) {
		install(ctx, o.hook)
		for _, name := range []string{"allowed", "mutated", "denied", "failed", "panicked"} {
			_, err := clients.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, name), metav1.CreateOptions{})
			Expect(apierrors.IsForbidden(err)).To(Equal(name == "denied"), "%v", err)
			attributes := attributesOf(o.spanOf(name))
			Expect(attributes).To(HaveKeyWithValue("admission.outcome", name))
			Expect(attributes).To(HaveKeyWithValue("admission.kind", "/v1, Kind=ConfigMap"))
			Expect(attributes).To(HaveKeyWithValue("k8s.namespace.name", ns))
			Expect(attributes).To(HaveKeyWithValue("admission.operation", "CREATE"))
			Expect(attributes).NotTo(ContainElement(ContainSubstring("admin")), "a span must not contain the user")
		}
		Expect(o.counts()).To(Equal(map[string]float64{"allowed": 1, "mutated": 1, "denied": 1, "failed": 1, "panicked": 1}))

		By("comparing with the API server's metrics, which the alert rules and the dashboard use")
		text, err := clients.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Split(string(text), "\n")).To(ContainElements(
			`apiserver_admission_webhook_fail_open_count{name="watched.example.com",type="admit"} 2`,
			`apiserver_admission_webhook_rejection_count{error_type="no_error",name="watched.example.com",operation="CREATE",rejection_code="403",type="admit"} 1`,
			`apiserver_admission_webhook_request_total{code="200",name="watched.example.com",operation="CREATE",rejected="false",type="admit"} 2`,
			HavePrefix(`apiserver_admission_webhook_admission_duration_seconds_bucket{name="watched.example.com",operation="CREATE",rejected="false",type="admit",le="+Inf"}`),
		))
	})

	It("continue the trace of the API client, even if the API server does not trace", func(ctx context.Context) {
		install(ctx, o.hook)
		client := tracedClient(config, "00-"+clientTrace+"-"+clientSpan+"-01")
		_, err := client.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, "allowed"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		span := o.spanOf("allowed")
		Expect(span.SpanContext().TraceID().String()).To(Equal(clientTrace))
		Expect(span.Parent().SpanID().String()).To(Equal(clientSpan))
		Expect(span.Parent().IsRemote()).To(BeTrue())
	})

	It("record no span for a trace that is not sampled, but pass its context to the handler", func(ctx context.Context) {
		install(ctx, o.hook)
		client := tracedClient(config, "00-"+clientTrace+"-"+clientSpan+"-00")
		_, err := client.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, "allowed"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(o.spans.Ended()).To(BeEmpty())
		Expect(o.contexts["allowed"].TraceID().String()).To(Equal(clientTrace))
		Expect(o.counts()).To(Equal(map[string]float64{"allowed": 1}))
	})
})

// tracingConfiguration makes the API server sample every request.
const tracingConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: TracingConfiguration
endpoint: %s
samplingRatePerMillion: 1000000
`

// A collector receives the spans of an API server. It implements only the part of gRPC that the API server uses, and
// finds span ids by a search in the bytes. Without a collector, an API server is slow to stop.
type collector struct {
	addr string

	mu  sync.Mutex
	got []byte
}

func newCollector() *collector {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	c := &collector{addr: listener.Addr().String()}
	server := &http.Server{Handler: c, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	c.got = append(c.got, body...)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = w.Write(make([]byte, 5)) // an empty message
	w.Header().Set("Grpc-Status", "0")
}

// has reports whether the collector has received a span with the id, or a reference to such a span.
func (c *collector) has(id trace.SpanID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.got, id[:])
}

var _ = Describe("an API server with tracing", func() {
	It("creates the parent of the span of a call", func(ctx context.Context) {
		file := filepath.Join(GinkgoT().TempDir(), "tracing.yaml")
		collected := newCollector()
		Expect(os.WriteFile(file, fmt.Appendf(nil, tracingConfiguration, collected.addr), 0o600)).To(Succeed())
		other, err := apiserver.Start(ctx, map[string][]string{"tracing-config-file": {file}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Stop)

		o := newObserved("watched.example.com", nil)
		_, err = o.register(ctx, other.Config)
		Expect(err).NotTo(HaveOccurred())
		plain, err := kubernetes.NewForConfig(other.Config)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (map[string]string, error) { // until the API server uses the configuration
			created, err := plain.CoreV1().ConfigMaps("default").Create(ctx, configMap("default", "mutated"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return created.Data, err
		}, "20s", "20ms").WithContext(ctx).Should(HaveKeyWithValue("seen", "yes"))
		begun := o.spanOf("mutated")
		Expect(begun.Parent().IsValid()).To(BeTrue(), "the parent must be a span of the API server")
		Expect(begun.Parent().IsRemote()).To(BeTrue())

		client := tracedClient(other.Config, "00-"+clientTrace+"-"+clientSpan+"-01")
		_, err = client.CoreV1().ConfigMaps("default").Create(ctx, configMap("default", "allowed"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		span := o.spanOf("allowed")
		Expect(span.SpanContext().TraceID().String()).To(Equal(clientTrace))
		Expect(span.Parent().SpanID().String()).NotTo(Equal(clientSpan), "the parent must be a span of the API server")

		By("checking that the API server sends the parent spans")
		Eventually(func() bool { return collected.has(begun.Parent().SpanID()) && collected.has(span.Parent().SpanID()) }, "20s", "50ms").
			WithContext(ctx).Should(BeTrue())
	})
})

// register serves the hook and registers it with an API server other than the suite's.
func (o *observed) register(ctx context.Context, c *rest.Config) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	configuration, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "watched", URL: serve(o.hook), CABundle: ca.Bundle}, o.hook)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	return client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, configuration, metav1.CreateOptions{})
}
