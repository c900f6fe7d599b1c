// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/certs"
	installing "github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// convertedCRD has two versions. Its conversion webhook is on the server that the spec starts.
const convertedCRD = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "coins.injection.example.com"},
	"spec": {"group": "injection.example.com", "scope": "Namespaced", "names": {"plural": "coins", "kind": "Coin"},
		"versions": [
			{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
			{"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}],
		"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "%s/convert"}}}}}`

const aggregated = `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.aggregated.example.com"},
	"spec": {"group": "aggregated.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
		"service": {"namespace": %q, "name": %q, "port": %s}}}`

// convert responds to a ConversionReview. The two versions have the same fields.
func convert(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range review.Request.Objects {
		var u unstructured.Unstructured
		_ = u.UnmarshalJSON(object.Raw) // valid, because it is from the API server
		u.SetAPIVersion(review.Request.DesiredAPIVersion)
		answer.ConvertedObjects = append(answer.ConvertedObjects, runtime.RawExtension{Object: &u})
	}
	review.Request, review.Response = nil, answer
	_ = json.NewEncoder(w).Encode(review) // the API server reports an incomplete response
}

// discover answers discovery requests for an aggregated API without resources.
func discover(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "aggregated.example.com/v1", "resources": []}`)
}

// serveWith serves the mux with the certificates of the source until the spec ends. Each call uses a new
// connection, because an old connection keeps its certificate.
func serveWith(source certs.Source, listener net.Listener, mux http.Handler) {
	server := &http.Server{
		TLSConfig: certs.TLSConfig(source), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(GinkgoWriter, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			mux.ServeHTTP(w, r)
		}),
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.ServeTLS(listener, "", "") }()
	DeferCleanup(func() {
		_ = server.Close()
		Eventually(stopped).Should(Receive(MatchError(http.ErrServerClosed)))
	})
}

// runSource starts the source as a ServiceAccount that has only the permissions that package install generates for it.
func runSource(ctx context.Context, o certs.Options, hooks ...*webhook.Hook) certs.Source {
	GinkgoHelper()
	permissions, err := installing.RBAC(installing.Options{Configuration: webhook.ConfigurationOptions{Name: o.Namespace, Namespace: o.Namespace, URL: "https://127.0.0.1"}},
		installing.RBACOptions{ServiceAccount: "hook", Hooks: hooks, Certs: &o})
	Expect(err).NotTo(HaveOccurred())
	grant(ctx, permissions)
	o.Config = rest.CopyConfig(config)
	o.Config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + o.Namespace + ":hook", Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	o.Logger, o.Interval = logr.New(ginkgoSink{}), time.Second
	source, err := certs.NewSelfManaged(o)
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- source.Start(running) }()
	DeferCleanup(func() {
		stop()
		Eventually(stopped, "10s").Should(Receive(Succeed()))
	})
	return source
}

var _ = Describe("a self-managed source", func() {
	It("makes the API server trust webhooks, conversions and aggregated APIs, with the generated rights only", func(ctx context.Context) {
		client, err := dynamic.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		ns := newNamespace(ctx)
		hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name: "label.injection.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")), NamespaceSelector: only(ns),
		}, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
			req.Object.Labels = map[string]string{"seen": "yes"}
			return nil
		})
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		mux := newMux(hook)
		mux.HandleFunc("/convert", convert)
		mux.HandleFunc("/apis/aggregated.example.com/v1", discover)

		mutating, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: ns, Namespace: ns, URL: "https://" + listener.Addr().String()}, hook)
		Expect(err).NotTo(HaveOccurred())
		source := runSource(ctx, certs.Options{
			Namespace: ns, Secret: "ca",
			DNSNames: certs.ServiceNames("hooks", ns), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			Targets: []certs.Target{
				{Kind: certs.MutatingWebhookConfiguration, Name: ns, Webhooks: []string{hook.Name()}}, // without the marker
				{Kind: certs.CustomResourceDefinition, Name: "coins.injection.example.com"},
				{Kind: certs.APIService, Name: "v1.aggregated.example.com"},
			},
		}, hook)
		serveWith(source, listener, mux)
		register(ctx, mutating, nil)
		awaitCalls := func() {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				made, err := clients.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, "ask"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(made.Labels).To(HaveKeyWithValue("seen", "yes"))
			}, "20s", "20ms").WithContext(ctx).Should(Succeed())
		}

		By("calling a webhook")
		awaitCalls()

		By("restoring the caBundle that another manager removed")
		api := clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
		live, err := api.Get(ctx, ns, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(live.Webhooks[0].ClientConfig.CABundle).To(Equal(source.Bundle()))
		Expect(live.Webhooks[1].ClientConfig.CABundle).To(Equal(ca.Bundle), "the source leaves the caBundle of the marker alone")
		live.Webhooks[0].ClientConfig.CABundle = nil
		_, err = api.Update(ctx, live, metav1.UpdateOptions{FieldManager: "helm"})
		Expect(err).NotTo(HaveOccurred())
		awaitCalls()

		By("converting a custom resource")
		create(ctx, client, "customresourcedefinitions", fmt.Sprintf(convertedCRD, "https://"+listener.Addr().String()))
		coins := func(version string) dynamic.ResourceInterface {
			return client.Resource(schema.GroupVersionResource{Group: "injection.example.com", Version: version, Resource: "coins"}).Namespace(ns)
		}
		Eventually(func() error {
			_, err := coins("v2").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "injection.example.com/v2", "kind": "Coin", "metadata": map[string]any{"name": "penny"},
			}}, metav1.CreateOptions{})
			return err
		}, "20s", "50ms").WithContext(ctx).Should(Succeed())
		Expect(coins("v1").Get(ctx, "penny", metav1.GetOptions{})).To(HaveField("Object", HaveKeyWithValue("apiVersion", "injection.example.com/v1")))

		By("calling an aggregated API")
		service := newService(ctx, ns)
		_, port, err := net.SplitHostPort(listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		create(ctx, client, "apiservices", fmt.Sprintf(aggregated, ns, service, port))
		Eventually(func() (string, error) {
			answer, err := clients.RESTClient().Get().AbsPath("/apis/aggregated.example.com/v1").DoRaw(ctx)
			return string(answer), err
		}, "20s", "50ms").WithContext(ctx).Should(ContainSubstring(`"groupVersion": "aggregated.example.com/v1"`))

		Eventually(func() error { return certs.Ready(source)(ctx) }, "20s", "20ms").Should(Succeed())
		Expect(source.Status().Err).NotTo(HaveOccurred())
	})
})

// create creates an object that is deleted after the spec.
func create(ctx context.Context, client dynamic.Interface, resource, text string) {
	GinkgoHelper()
	var object unstructured.Unstructured
	Expect(object.UnmarshalJSON([]byte(text))).To(Succeed())
	r := client.Resource(object.GroupVersionKind().GroupVersion().WithResource(resource))
	_, err := r.Create(ctx, &object, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(r.Delete(ctx, object.GetName(), metav1.DeleteOptions{})).To(Succeed())
	})
}
