// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/internal/devcert"
)

var keepLog = flag.String("keep", "", "keep the log that the API server writes in this file")

// auditPolicy logs patches in all namespaces except brief.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  namespaces: [brief]
- level: RequestResponse
  namespaces: [full]
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// An auditedCluster is a real API server with an audit log, and a server of webhooks.
type auditedCluster struct {
	t      *testing.T
	server *apiserver.Server
	client *kubernetes.Clientset
	log    string
	hooks  *hookServer
}

func newAuditedCluster(t *testing.T) *auditedCluster {
	t.Helper()
	need.APIServer(t)
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &auditedCluster{t: t, log: filepath.Join(dir, "audit.log"), hooks: newHookServer(t)}
	var err error
	w.server, err = apiserver.Start(t.Context(), map[string][]string{
		"audit-policy-file": {policy}, "audit-log-path": {w.log}, "audit-log-mode": {"blocking"},
		"disable-admission-plugins": {"ServiceAccount"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	config := rest.CopyConfig(w.server.Config)
	config.QPS, config.Burst = -1, -1
	config.WarningHandler = rest.NoWarnings{}
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return w
}

// stop ends the API server, so that its log is complete.
func (w *auditedCluster) stop() {
	if w.server == nil {
		return
	}
	if err := w.server.Stop(); err != nil {
		w.t.Error(err)
	}
	w.server = nil
}

func (w *auditedCluster) namespace(name string) {
	w.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.client.CoreV1().Namespaces().Create(w.t.Context(), ns, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// rulesFor returns rules for ConfigMaps and Pods: for DELETE in the namespace "gone", and for CREATE and UPDATE in any
// other namespace.
func rulesFor(namespace string) []admissionregistrationv1.RuleWithOperations {
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	if namespace == "gone" {
		operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
	}
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps", "pods"}},
	}}
}

func in(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
}

// mutating registers mutating webhooks for a namespace. The configuration has the name of the namespace, and webhooks
// are named NAME.NAMESPACE.example.com. mutating adds one more webhook, named wait. Once the API server calls this
// webhook, it uses the whole configuration. settle waits for that.
func (w *auditedCluster) mutating(namespace string, hooks ...admissionregistrationv1.MutatingWebhook) {
	w.t.Helper()
	none, exact := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Exact
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	for _, h := range append(hooks, admissionregistrationv1.MutatingWebhook{Name: "wait"}) {
		selected := namespace
		if h.Name == "wait" {
			selected = "wait"
			w.hooks.handle("wait."+namespace+".example.com", allow)
		}
		h.Name += "." + namespace + ".example.com"
		h.Rules, h.NamespaceSelector, h.MatchPolicy = rulesFor(selected), in(selected), &exact
		h.AdmissionReviewVersions, h.SideEffects = []string{"v1"}, &none
		if h.ClientConfig.URL == nil {
			h.ClientConfig = w.hooks.at(h.Name)
		}
		configuration.Webhooks = append(configuration.Webhooks, h)
	}
	if _, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(w.t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// validating registers validating webhooks for a namespace, as mutating does.
func (w *auditedCluster) validating(namespace string, hooks ...admissionregistrationv1.ValidatingWebhook) {
	w.t.Helper()
	none, exact := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Exact
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	for _, h := range append(hooks, admissionregistrationv1.ValidatingWebhook{Name: "vwait"}) {
		selected := namespace
		if h.Name == "vwait" {
			selected = "wait"
			w.hooks.handle("vwait."+namespace+".example.com", allow)
		}
		h.Name += "." + namespace + ".example.com"
		h.Rules, h.NamespaceSelector, h.MatchPolicy = rulesFor(selected), in(selected), &exact
		h.AdmissionReviewVersions, h.SideEffects = []string{"v1"}, &none
		h.ClientConfig = w.hooks.at(h.Name)
		configuration.Webhooks = append(configuration.Webhooks, h)
	}
	if _, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(w.t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// settle waits until the API server calls all webhooks that are registered.
func (w *auditedCluster) settle() {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if _, err := w.client.CoreV1().ConfigMaps("wait").Create(ctx, config("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return false, err
		}
		return w.hooks.allCalled("wait."), nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func config(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "none"}}, Data: map[string]string{"owner": "none"}}
}

// create creates a ConfigMap and returns the stored object. It returns nil if the request fails, for example because a
// webhook denied it.
func (w *auditedCluster) create(namespace, name string) *corev1.ConfigMap {
	w.t.Helper()
	made, err := w.client.CoreV1().ConfigMaps(namespace).Create(w.t.Context(), config(name), metav1.CreateOptions{})
	if err != nil {
		w.t.Logf("create %s/%s: %v", namespace, name, err)
		return nil
	}
	return made
}

// An answerer answers the nth call of a webhook with a response or an HTTP status.
type answerer func(n int, req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int)

func allow(int, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
	return &admissionv1.AdmissionResponse{Allowed: true}, 200
}

// patches returns an answerer that always answers with the same patch.
func patches(patch string) answerer {
	return func(int, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
		return patchWith(patch), 200
	}
}

func patchWith(patch string) *admissionv1.AdmissionResponse {
	jsonPatch := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: &jsonPatch}
}

// denies returns an answerer that denies every request with this code.
func denies(code int32) answerer {
	return func(int, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: "not on a Friday"}}, 200
	}
}

// breaks is an answerer that answers with HTTP status 500.
func breaks(int, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, int) {
	return nil, 500
}

// A hookServer serves webhooks and counts their calls.
type hookServer struct {
	bundle []byte
	url    string

	mu      sync.Mutex
	answers map[string]answerer
	counts  map[string]*counts
}

// counts are the numbers of calls of one webhook, in total and by result.
type counts struct{ calls, patched, denied, failed int }

func newHookServer(t *testing.T) *hookServer {
	t.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	serving, err := ca.Serving("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	h := &hookServer{bundle: ca.Bundle, answers: map[string]answerer{}, counts: map[string]*counts{}}
	server := httptest.NewUnstartedServer(h)
	server.TLS = serving
	server.StartTLS()
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// handle registers the answerer of a webhook.
func (h *hookServer) handle(name string, answer answerer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[name], h.counts[name] = answer, &counts{}
}

func (h *hookServer) at(name string) admissionregistrationv1.WebhookClientConfig {
	url := h.url + "/" + name
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: h.bundle}
}

// of returns the counts of a webhook.
func (h *hookServer) of(name string) counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.counts[name]; c != nil {
		return *c
	}
	return counts{}
}

// allCalled reports whether each webhook with this part in its name was called.
func (h *hookServer) allCalled(part string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, c := range h.counts {
		if strings.Contains(name, part) && c.calls == 0 {
			return false
		}
	}
	return true
}

func (h *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	h.mu.Lock()
	answer, count := h.answers[name], h.counts[name]
	if answer == nil {
		h.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	count.calls++
	n := count.calls
	h.mu.Unlock()
	response, status := answer(n, review.Request)
	h.mu.Lock()
	switch {
	case status != 200:
		count.failed++
	case !response.Allowed:
		count.denied++
	case len(response.Patch) > 0:
		count.patched++
	}
	h.mu.Unlock()
	if status != 200 {
		http.Error(w, "out of order", status)
		return
	}
	response.UID = review.Request.UID
	review.Request, review.Response = nil, response
	if err := json.NewEncoder(w).Encode(review); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// noNames starts an HTTPS server whose certificate has no subject alternative names, and returns the configuration to
// call it.
func noNames(t *testing.T) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	url := "https://localhost:" + port + "/"
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}
