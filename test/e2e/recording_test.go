// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	recordcli "github.com/admitkit/admitkit/internal/cli/record"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/redact/planted"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// widgetCRD has fields whose pseudonyms must have a certain form.
const widgetCRD = `
metadata: {name: widgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              auth:
                type: object
                required: [username, password]
                properties:
                  username: {type: string, enum: [ada]}
                  password: {type: string, minLength: 4}
                  clientSecret: {type: string, minLength: 4}
              tokens: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              url: {type: string, format: uri, pattern: "^https://[^@]+@git[.]example/shop$"}
              text: {type: string}
              pin: {type: string, pattern: "^[1-9][0-9]{9}$"}
              env: {type: object, additionalProperties: {type: string}}
              extraEnv: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              limits: {type: object, additionalProperties: {x-kubernetes-int-or-string: true}}
              replicas: {type: integer, maximum: 5}
`

var _ = Describe("recording", func() {
	It("replaces planted secrets so that the API server still accepts the objects", func(ctx context.Context) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.UnmarshalStrict([]byte(widgetCRD), crd)).To(Succeed())
		_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
		Expect(err).NotTo(HaveOccurred())
		all, err := dynamic.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		ns := newNamespace(ctx)
		dir := GinkgoT().TempDir()
		recorder, err := record.New(record.Options{Dir: dir, MaxBytesPerSecond: -1, SecretPaths: []string{planted.SecretPath}})
		Expect(err).NotTo(HaveOccurred())
		install(ctx, copying().WithObserver(recorder))

		p := planted.New(11)
		objects := map[string]planted.Object{}
		for round := 0; len(p.Secrets) < 1000; round++ {
			for _, o := range p.Objects(fmt.Sprint(round)) {
				created, err := createPlanted(ctx, all, o, ns, o.JSON)
				Expect(err).NotTo(HaveOccurred(), "%s: the test's own object is invalid: %s", o.Kind, o.JSON)
				objects[created.GetName()] = o
			}
		}
		Expect(recorder.Close(ctx)).To(Succeed())

		Expect(p.Surviving(textIn(dir))).To(BeEmpty())
		calls := callsIn(dir)
		Expect(len(calls)).To(BeNumerically(">=", len(objects)))
		for _, call := range calls {
			req, err := review.Decode(call.Request)
			Expect(err).NotTo(HaveOccurred())
			Expect(call.Outcome).To(Equal(webhook.Mutated))
			o := objects[req.Name]
			_, err = createPlanted(ctx, all, o, ns, req.Object)
			Expect(err).NotTo(HaveOccurred(), "%s: the API server rejects the redacted object %s", o.Kind, req.Object)
			patched, err := patch.Apply(req.Object, patchIn(call.Answer))
			Expect(err).NotTo(HaveOccurred())
			_, err = createPlanted(ctx, all, o, ns, patched)
			Expect(err).NotTo(HaveOccurred(), "%s: the API server rejects the redacted object with its patch: %s", o.Kind, patched)
		}
	})

	It("records a webhook of another framework behind a proxy", func(ctx context.Context) {
		hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if uid := regexp.MustCompile(`"uid":"([^"]+)"`).FindSubmatch(body); uid != nil {
				fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"%s","allowed":false,"status":{"code":403,"message":"no hunter2 here"}}}`, uid[1])
			}
		}))
		var err error
		hook.TLS, err = ca.Serving("127.0.0.1")
		Expect(err).NotTo(HaveOccurred())
		hook.StartTLS()
		DeferCleanup(hook.Close)
		dir := GinkgoT().TempDir()
		url, stop := startProxy(hook.URL, dir)

		ns := newNamespace(ctx)
		registered := configMapHook("validating", "v1", ns, "denies.example.com", func(*webhook.Request[corev1.ConfigMap]) error { return nil })
		installWith(ctx, webhook.ConfigurationOptions{URL: url}, registered)
		object := configMap(ns, "denied")
		object.Data = map[string]string{"password": "hunter2"}
		_, err = clients.CoreV1().ConfigMaps(ns).Create(ctx, object, metav1.CreateOptions{})
		Expect(err).To(MatchError(`admission webhook "denies.example.com" denied the request: no hunter2 here`))
		stop()

		calls := callsIn(dir)
		Expect(calls).NotTo(BeEmpty())
		last := calls[len(calls)-1]
		Expect(last.Outcome).To(Equal(webhook.Denied))
		Expect(last.Code).To(Equal(403))
		Expect(last.Path).To(Equal("/validate/denies.example.com"))
		Expect(textIn(dir)).NotTo(ContainSubstring("hunter2"))
		Expect(textIn(dir)).To(ContainSubstring(`"message":"no `))
	})
})

// copying returns a hook for all kinds of the planted objects. It copies a label into an annotation.
func copying() *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:           "copies.example.com",
		Rules:          webhook.Rules(webhook.OnCreate("*", "*", "*")),
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "release", Operator: metav1.LabelSelectorOpExists}}},
	}, func(_ context.Context, req *webhook.Request[metav1.PartialObjectMetadata]) error {
		req.Object.Annotations["example.com/copy"] = req.Object.Labels["release"]
		req.Warn("copied " + req.Object.Labels["release"])
		return nil
	})
}

// createPlanted creates an object in a dry run.
func createPlanted(ctx context.Context, all dynamic.Interface, o planted.Object, namespace string, document []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(document); err != nil {
		return nil, err
	}
	resource := all.Resource(schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Resource})
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if !o.Namespaced {
		return resource.Create(ctx, object, options)
	}
	return resource.Namespace(namespace).Create(ctx, object, options)
}

// patchIn returns the patch of an answer.
func patchIn(answer []byte) patch.Patch {
	GinkgoHelper()
	var got struct{ Response struct{ Patch []byte } }
	Expect(yaml.Unmarshal(answer, &got)).To(Succeed())
	p, err := patch.Parse(got.Response.Patch)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// callsIn returns the calls in the files of a folder.
func callsIn(dir string) (calls []*record.Call) {
	GinkgoHelper()
	eachFile(dir, func(f *os.File) {
		reader := record.NewReader(f)
		for call, err := range reader.All() {
			Expect(err).NotTo(HaveOccurred())
			calls = append(calls, call)
		}
		Expect(reader.Report().Skipped).To(BeZero())
		Expect(reader.Report().CutOff).NotTo(HaveOccurred())
	})
	return calls
}

// textIn returns the text of the files of a folder.
func textIn(dir string) string {
	GinkgoHelper()
	var text strings.Builder
	eachFile(dir, func(f *os.File) {
		z, err := gzip.NewReader(f)
		Expect(err).NotTo(HaveOccurred())
		_, err = io.Copy(&text, z) //nolint:gosec // the file is the test's own
		Expect(err).NotTo(HaveOccurred())
	})
	return text.String()
}

func eachFile(dir string, read func(*os.File)) {
	GinkgoHelper()
	names, err := filepath.Glob(filepath.Join(dir, "*.gz"))
	Expect(err).NotTo(HaveOccurred())
	Expect(names).NotTo(BeEmpty())
	for _, name := range names {
		f, err := os.Open(name)
		Expect(err).NotTo(HaveOccurred())
		read(f)
		Expect(f.Close()).To(Succeed())
	}
}

// startProxy starts "admitkit record" and returns its URL. The function stops it.
func startProxy(to, dir string) (url string, stop func()) {
	GinkgoHelper()
	certFile, keyFile, caFile := proxyCertificate()
	var out proxyOutput
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		defer GinkgoRecover()
		done <- recordcli.Run(ctx, &screen.Screen{Err: &out, Getenv: os.Getenv}, recordcli.Options{
			Listen: "127.0.0.1:0", To: to, TLSCert: certFile, TLSKey: keyFile, CAFile: caFile, Rate: 1, Speed: "64Ki", FileSize: "1Mi",
			Record: record.Options{Dir: dir, MaxFiles: 1, MaxFileAge: time.Hour},
		})
	}()
	DeferCleanup(cancel)
	address := regexp.MustCompile(`listening at (\S+)`)
	Eventually(func() []string { return address.FindStringSubmatch(out.String()) }, "20s").ShouldNot(BeEmpty())
	return address.FindStringSubmatch(out.String())[1], func() {
		GinkgoHelper()
		cancel()
		Eventually(done, "60s").Should(Receive(Succeed()))
	}
}

// proxyCertificate writes a serving certificate, its key and its CA to files.
func proxyCertificate() (certFile, keyFile, caFile string) {
	GinkgoHelper()
	tlsConfig, err := ca.Serving("127.0.0.1")
	Expect(err).NotTo(HaveOccurred())
	key, err := x509.MarshalPKCS8PrivateKey(tlsConfig.Certificates[0].PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	write := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		Expect(os.WriteFile(name, data, 0o600)).To(Succeed())
		return name
	}
	return write("tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsConfig.Certificates[0].Certificate[0]})),
		write("tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), write("ca.crt", ca.Bundle)
}

// A proxyOutput is the output of a command that runs.
type proxyOutput struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *proxyOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *proxyOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
