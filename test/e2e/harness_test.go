// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// reviewVersions are the AdmissionReview versions that specs run with.
var reviewVersions = []string{"v1", "v1beta1"}

// markerURL is the address of the server that startMarker starts.
var markerURL string

const markerMessage = "the configuration is enforced"

// startMarker serves two hooks, the marker hooks. register appends one to each configuration. Once the API server calls
// it, the configuration is enforced.
func startMarker() {
	deny := func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
		return webhook.Deny(markerMessage)
	}
	markerURL = serve(
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "mutating.marker.example.com", Rules: markerRules()}, deny),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "validating.marker.example.com", Rules: markerRules()}, deny),
	)
}

func markerRules() []admissionregistrationv1.RuleWithOperations {
	return webhook.Rules(webhook.OnCreate("", "v1", "configmaps"))
}

// serve serves the hooks on loopback until the spec, or the suite, ends.
func serve(hooks ...*webhook.Hook) (url string) {
	GinkgoHelper()
	tlsConfig, err := ca.Serving("127.0.0.1", "localhost")
	Expect(err).NotTo(HaveOccurred())
	return serveTLS(tlsConfig, hooks...)
}

func serveTLS(tlsConfig *tls.Config, hooks ...*webhook.Hook) (url string) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	return serveOn(listener, tlsConfig, hooks...)
}

func serveOn(listener net.Listener, tlsConfig *tls.Config, hooks ...*webhook.Hook) (url string) {
	server := webhook.NewServer(webhook.Options{
		Listener: listener, TLSConfig: tlsConfig, Logger: logr.New(ginkgoSink{}), ShutdownDelay: -1,
	}, hooks...)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Start(ctx) }()
	DeferCleanup(stop)
	stopping = append(stopping, stopped)
	return "https://" + listener.Addr().String()
}

// stopping has the result channels of all servers. Closing h2 connections takes a server a second,
// so the suite waits for all servers at its end.
var stopping []<-chan error

func awaitStopped() {
	for _, stopped := range stopping {
		Eventually(stopped, "40s").Should(Receive(Succeed()))
	}
}

// install serves the hooks, registers them by URL and waits until the API server calls them.
func install(ctx context.Context, hooks ...*webhook.Hook) {
	GinkgoHelper()
	installWith(ctx, webhook.ConfigurationOptions{URL: serve(hooks...)}, hooks...)
}

var configurations atomic.Int64

// installWith registers the hooks with the options, and sets the name and CA itself. It deletes the
// configurations after the spec.
func installWith(ctx context.Context, o webhook.ConfigurationOptions, hooks ...*webhook.Hook) {
	GinkgoHelper()
	if o.Name == "" {
		o.Name = fmt.Sprintf("e2e-%d", configurations.Add(1))
	}
	if o.CABundle == nil {
		o.CABundle = ca.Bundle
	}
	mutating, validating, err := webhook.Configurations(o, hooks...)
	Expect(err).NotTo(HaveOccurred())
	register(ctx, mutating, validating)
}

// register creates the configurations, each of which may be nil. It waits until the marker hook at
// the end of each denies a dry-run request. From then on the configurations are enforced, not just
// stored.
func register(ctx context.Context, mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) {
	GinkgoHelper()
	api := clients.AdmissionregistrationV1()
	if mutating != nil {
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: "mutating.marker.example.com", ClientConfig: markerClient("/mutate/mutating.marker.example.com"), Rules: markerRules(),
			ObjectSelector: markerSelector("mutating-" + mutating.Name), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		})
		_, err := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(api.MutatingWebhookConfigurations().Delete(ctx, mutating.Name, metav1.DeleteOptions{})).To(Succeed())
			awaitMarker(ctx, "mutating-"+mutating.Name, Succeed())
		})
		awaitMarker(ctx, "mutating-"+mutating.Name, MatchError(ContainSubstring(markerMessage)))
	}
	if validating != nil {
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: "validating.marker.example.com", ClientConfig: markerClient("/validate/validating.marker.example.com"), Rules: markerRules(),
			ObjectSelector: markerSelector("validating-" + validating.Name), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		})
		_, err := api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(api.ValidatingWebhookConfigurations().Delete(ctx, validating.Name, metav1.DeleteOptions{})).To(Succeed())
			awaitMarker(ctx, "validating-"+validating.Name, Succeed())
		})
		awaitMarker(ctx, "validating-"+validating.Name, MatchError(ContainSubstring(markerMessage)))
	}
}

func markerClient(path string) admissionregistrationv1.WebhookClientConfig {
	url := markerURL + path
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca.Bundle}
}

func markerSelector(id string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"marker": id}}
}

// awaitMarker sends marker requests until the outcome matches. Marker requests are dry runs in a namespace that no
// other hook selects.
func awaitMarker(ctx context.Context, id string, outcome OmegaMatcher) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := clients.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "marker-", Labels: map[string]string{"marker": id},
		}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, "20s", "20ms").WithContext(ctx).Should(outcome)
}

// newNamespace creates a namespace for one spec and returns its name.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return ns.Name
}

// only returns a selector for one namespace, so that specs do not see each other's objects.
func only(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

// pod returns a small valid Pod.
func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
	}
}

// calls records the calls of hooks, in order.
type calls struct {
	mu   sync.Mutex
	list []call
}

// A call is one review as the hook received it.
type call struct {
	hook   string
	meta   review.Metadata
	object []byte
	old    []byte
}

// saw records a request. Hooks call it first.
func saw[T any](c *calls, hook string, req *webhook.Request[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call{hook: hook, meta: req.Metadata, object: req.RawObject(), old: req.RawOldObject()})
}

// all returns the calls recorded so far.
func (c *calls) all() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]call(nil), c.list...)
}

// names returns the names of the called hooks in order, such as "a b a".
func (c *calls) names() string {
	var names []string
	for _, one := range c.all() {
		names = append(names, one.hook)
	}
	return strings.Join(names, " ")
}

// ginkgoSink writes log lines into the report of the spec.
type ginkgoSink struct{ values []any }

func (ginkgoSink) Init(logr.RuntimeInfo)          {}
func (ginkgoSink) Enabled(int) bool               { return true }
func (s ginkgoSink) WithName(string) logr.LogSink { return s }
func (s ginkgoSink) WithValues(v ...any) logr.LogSink {
	return ginkgoSink{append(s.values[:len(s.values):len(s.values)], v...)}
}
func (s ginkgoSink) Info(_ int, msg string, v ...any) {
	fmt.Fprintln(GinkgoWriter, append([]any{msg}, append(s.values, v...)...)...)
}
func (s ginkgoSink) Error(err error, msg string, v ...any) {
	s.Info(0, msg, append(v, "error", err)...)
}
