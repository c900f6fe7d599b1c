// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// recordingServer is a TLS server that records its requests.
type recordingServer struct {
	url  string
	port int32

	mu       sync.Mutex
	arrivals []string
}

// newRecordingServer serves the handler, with a certificate for these hosts, until the spec ends.
func newRecordingServer(handler http.Handler, hosts ...string) *recordingServer {
	GinkgoHelper()
	tlsConfig, err := ca.Serving(hosts...)
	Expect(err).NotTo(HaveOccurred())
	tlsConfig.NextProtos = []string{"h2", "http/1.1"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	d := &recordingServer{url: "https://" + listener.Addr().String(), port: int32(listener.Addr().(*net.TCPAddr).Port)}
	httpServer := &http.Server{TLSConfig: tlsConfig, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.arrivals = append(d.arrivals, fmt.Sprintf("%s %s, host %s, SNI %q, %s", r.Method, r.URL.Path, r.Host, r.TLS.ServerName, r.Proto))
		d.mu.Unlock()
		handler.ServeHTTP(w, r)
	})}
	go func() { _ = httpServer.ServeTLS(listener, "", "") }()
	DeferCleanup(httpServer.Close)
	return d
}

func (d *recordingServer) saw() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.arrivals...)
}

// newService creates a Service whose endpoint is this machine.
func newService(ctx context.Context, namespace string) string {
	GinkgoHelper()
	service, err := clients.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return service.Name
}

// awaitService waits until the API server has the Service in its cache and can call through it.
func awaitService(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := clients.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(namespace, "ask"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, "20s", "20ms").WithContext(ctx).Should(Succeed())
}

// newMux registers hooks on a ServeMux of the standard library.
func newMux(hooks ...*webhook.Hook) *http.ServeMux {
	mux := http.NewServeMux()
	for _, hook := range hooks {
		mux.Handle(hook.Path(), hook)
	}
	return mux
}

// recordingHook returns a hook that records its calls.
func recordingHook(seen *calls, kind, namespace, name string, client admissionregistrationv1.WebhookClientConfig) *webhook.Hook {
	return hookOf(kind, admissionregistrationv1.ValidatingWebhook{
		Name: name, ClientConfig: client, NamespaceSelector: only(namespace), Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
	}, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
		if req.Name != "ask" {
			saw(seen, kind+":"+name, req)
		}
		return nil
	})
}

var _ = Describe("the client configuration", func() {
	var (
		ns   string
		seen *calls
		own  admissionregistrationv1.WebhookClientConfig // clientConfig of the registration; if empty, the options apply
	)
	BeforeEach(func(ctx context.Context) { ns, seen = newNamespace(ctx), &calls{} })

	for _, kind := range hookKinds {
		Context("of a "+kind+" hook", func() {
			It("can have a service and a port: the certificate is for <service>.<namespace>.svc", func(ctx context.Context) {
				hook := recordingHook(seen, kind, ns, "visited.example.com", own)
				host := newService(ctx, ns) + "." + ns + ".svc"
				door := newRecordingServer(newMux(hook), host)
				installWith(ctx, webhook.ConfigurationOptions{
					Service: &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "hooks", Port: &door.port},
				}, hook)
				awaitService(ctx, ns)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal(kind + ":visited.example.com"))
				Expect(door.saw()).To(HaveEach(fmt.Sprintf("POST %s, host %s:%d, SNI %q, HTTP/1.1", hook.Path(), host, door.port, host)))
			})

			It("can have a service with a port and a path from the registration", func(ctx context.Context) {
				host := newService(ctx, ns) + "." + ns + ".svc"
				var hook http.Handler
				door := newRecordingServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hook.ServeHTTP(w, r) }), host)
				own := recordingHook(seen, kind, ns, "visited.example.com", admissionregistrationv1.WebhookClientConfig{
					Service: &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "hooks", Port: &door.port, Path: new("/team/red/")},
				})
				hook = newMux(own)
				Expect(own.Path()).To(Equal("/team/red"))
				installWith(ctx, webhook.ConfigurationOptions{}, own)
				awaitService(ctx, ns)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal(kind + ":visited.example.com"))
				Expect(door.saw()).To(HaveEach(fmt.Sprintf("POST /team/red, host %s:%d, SNI %q, HTTP/1.1", host, door.port, host)))
			})

			It("can have a URL with a path, to which the path of the hook is appended", func(ctx context.Context) {
				hook := recordingHook(seen, kind, ns, "visited.example.com", own)
				door := newRecordingServer(http.StripPrefix("/behind/Proxy_1", newMux(hook)), "127.0.0.1")
				installWith(ctx, webhook.ConfigurationOptions{URL: door.url + "/behind/Proxy_1/"}, hook)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal(kind + ":visited.example.com"))
				Expect(door.saw()).To(Equal([]string{fmt.Sprintf("POST /behind/Proxy_1%s, host 127.0.0.1:%d, SNI \"\", HTTP/2.0", hook.Path(), door.port)}))
			})

			It("can have a URL from the registration, in any valid form", func(ctx context.Context) {
				tlsConfig, err := ca.Serving("localhost")
				Expect(err).NotTo(HaveOccurred())
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				Expect(err).NotTo(HaveOccurred())
				base := "https://localhost:" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
				hook := recordingHook(seen, kind, ns, "visited.example.com", admissionregistrationv1.WebhookClientConfig{
					URL: new(base + "/Team%20Red//old/../hook/"),
				})
				serveOn(listener, tlsConfig, hook)
				Expect(hook.Path()).To(Equal("/Team Red/hook"))
				installWith(ctx, webhook.ConfigurationOptions{}, hook)
				_, err = createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal(kind + ":visited.example.com"))
			})
		})
	}

	It("with a service fails when the certificate is for another name", func(ctx context.Context) {
		newService(ctx, ns)
		hook := recordingHook(seen, validating, ns, "visited.example.com", own)
		door := newRecordingServer(newMux(hook), "hooks."+ns, "localhost", "127.0.0.1")
		installWith(ctx, webhook.ConfigurationOptions{
			Service: &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "hooks", Port: &door.port},
		}, hook)
		Eventually(func() error {
			_, err := createConfigMap(ctx, ns, "one")
			return err
		}, "20s", "20ms").WithContext(ctx).Should(MatchError(ContainSubstring("x509: certificate is valid for hooks." + ns + ", localhost, not hooks." + ns + ".svc")))
		Expect(seen.all()).To(BeEmpty())
	})

	It("with a service fails when the service does not exist", func(ctx context.Context) {
		hook := recordingHook(seen, validating, ns, "visited.example.com", own)
		installWith(ctx, webhook.ConfigurationOptions{Service: &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "nobody"}}, hook)
		_, err := createConfigMap(ctx, ns, "one")
		Expect(err).To(MatchError(And(
			HavePrefix(`Internal error occurred: failed calling webhook "visited.example.com": failed to call webhook: Post "https://nobody.`+ns+`.svc:443/validate/visited.example.com?timeout=5s"`),
			HaveSuffix(`service "nobody" not found`),
		)))
	})

	It("works when any certificate of the caBundle signed the server's certificate", func(ctx context.Context) {
		old, err := devcert.NewCA()
		Expect(err).NotTo(HaveOccurred())
		bundle := append([]byte("the old CA:\n"), old.Bundle...)
		bundle = append(append(bundle, "the new CA:\n"...), ca.Bundle...)
		hook := recordingHook(seen, mutating, ns, "visited.example.com", own)
		installWith(ctx, webhook.ConfigurationOptions{URL: serve(hook), CABundle: bundle}, hook)
		_, err = createConfigMap(ctx, ns, "one")
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.names()).To(Equal("mutating:visited.example.com"))
	})
})

var _ = Describe("hooks in one server", func() {
	var (
		ns   string
		seen *calls
		own  admissionregistrationv1.WebhookClientConfig
	)
	BeforeEach(func(ctx context.Context) { ns, seen = newNamespace(ctx), &calls{} })

	It("are each called at their own path, even a mutating and a validating hook with one name", func(ctx context.Context) {
		install(ctx,
			recordingHook(seen, validating, ns, "one.example.com", own),
			recordingHook(seen, mutating, ns, "two.example.com", own),
			recordingHook(seen, mutating, ns, "one.example.com", own),
		)
		_, err := createConfigMap(ctx, ns, "one")
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.names()).To(Equal("mutating:two.example.com mutating:one.example.com validating:one.example.com"))
	})

	It("are not called for other paths: the user reads that no hook is served there", func(ctx context.Context) {
		base := serve(recordingHook(seen, validating, ns, "one.example.com", own), recordingHook(seen, mutating, ns, "one.example.com", own))
		lost := recordingHook(seen, validating, ns, "lost.example.com", admissionregistrationv1.WebhookClientConfig{URL: new(base + "/validate/lost.example.com")})
		installWith(ctx, webhook.ConfigurationOptions{}, lost)
		_, err := createConfigMap(ctx, ns, "one")
		Expect(err).To(MatchError(`Internal error occurred: failed calling webhook "lost.example.com": failed to call webhook: no hook is served at /validate/lost.example.com`))
		Expect(seen.all()).To(BeEmpty())
	})

	It("can decode one object into different types", func(ctx context.Context) {
		type labelled struct {
			Metadata struct {
				Labels map[string]string `json:"labels,omitempty"`
			} `json:"metadata"`
		}
		registration := func(name string) admissionregistrationv1.MutatingWebhook {
			return admissionregistrationv1.MutatingWebhook{Name: name, NamespaceSelector: only(ns), Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps"))}
		}
		install(ctx,
			webhook.Mutating(registration("data.example.com"), func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
				req.Object.Data["replicas"] = "3"
				return nil
			}),
			webhook.Mutating(registration("labels.example.com"), func(_ context.Context, req *webhook.Request[labelled]) error {
				req.Object.Metadata.Labels = map[string]string{"example.com/owner": "red"}
				return nil
			}),
		)
		created, err := createConfigMap(ctx, ns, "one")
		Expect(err).NotTo(HaveOccurred())
		Expect(created.Data).To(Equal(map[string]string{"replicas": "3"}))
		Expect(created.Labels).To(Equal(map[string]string{"example.com/owner": "red"}))
	})
})
