// SPDX-License-Identifier: Apache-2.0

package imagepolicywebhook

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// A service reviews images. It records the reviews that it gets.
type service struct {
	kubeconfig string
	close      func()
	answer     func(w http.ResponseWriter, r *http.Request, review *v1alpha1.ImageReview)
	mu         sync.Mutex
	got        []v1alpha1.ImageReview
}

// serve starts an HTTPS server on loopback.
func serve(t *testing.T, answer func(http.ResponseWriter, *http.Request, *v1alpha1.ImageReview)) *service {
	t.Helper()
	s := &service{answer: answer}
	server := httptest.NewTLSServer(s)
	s.close = server.Close
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	config := clientcmdapi.NewConfig()
	config.Clusters["service"] = &clientcmdapi.Cluster{
		Server:                   server.URL + "/policy",
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	config.AuthInfos["hook"] = &clientcmdapi.AuthInfo{Token: "secret"}
	config.Contexts["service"] = &clientcmdapi.Context{Cluster: "service", AuthInfo: "hook"}
	config.CurrentContext = "service"
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review v1alpha1.ImageReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/policy" {
		http.Error(w, "bad question", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.got = append(s.got, review)
	s.mu.Unlock()
	s.answer(w, r, &review)
}

func (s *service) reviews() []v1alpha1.ImageReview {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

func (s *service) hook(t *testing.T, config Config) *webhook.Hook {
	t.Helper()
	config.KubeConfigFile = s.kubeconfig
	hook, err := Hook(config, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

// status returns a handler that answers with this status.
func status(s v1alpha1.ImageReviewStatus) func(http.ResponseWriter, *http.Request, *v1alpha1.ImageReview) {
	return func(w http.ResponseWriter, _ *http.Request, review *v1alpha1.ImageReview) {
		review.Status = s
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}
}

// code returns a handler that answers with this code and body.
func code(code int, body string) func(http.ResponseWriter, *http.Request, *v1alpha1.ImageReview) {
	return func(w http.ResponseWriter, _ *http.Request, _ *v1alpha1.ImageReview) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func TestVerdicts(t *testing.T) {
	notes := map[string]string{"a-b": "c", "not/valid": "d"}
	rows := []struct {
		reason string
		status v1alpha1.ImageReviewStatus
		want   string
	}{
		{"allowed", v1alpha1.ImageReviewStatus{Allowed: true, Reason: "good", AuditAnnotations: notes}, ""},
		{"denied", v1alpha1.ImageReviewStatus{Reason: "bad", AuditAnnotations: notes}, `pods "shop" is forbidden: image policy webhook backend denied one or more images: bad`},
		{"denied without a reason", v1alpha1.ImageReviewStatus{AuditAnnotations: notes}, `pods "shop" is forbidden: one or more images rejected by webhook backend`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			hook := serve(t, status(row.status)).hook(t, Config{})
			for _, old := range []*corev1.Pod{nil, gallerytest.Pod()} { // an update must have the same result
				decision, _ := gallerytest.Call(t, hook, gallerytest.Pod(), old)
				gallerytest.Denied(t, decision, row.want)
				if !maps.Equal(decision.AuditAnnotations, map[string]string{"a-b": "c"}) {
					t.Errorf("got the audit annotations %v", decision.AuditAnnotations)
				}
			}
		})
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	s := serve(t, status(v1alpha1.ImageReviewStatus{Allowed: true}))
	pod := gallerytest.Pod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{"a.image-policy.k8s.io/break-glass": "yes", "b": "no"}
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:v1"}}
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "debug:v1"}}}
	})
	hook := s.hook(t, Config{})
	for _, resource := range []string{"pods", "pods/ephemeralcontainers"} {
		req := webhooktest.Request(t, admissionv1.Update, corev1.SchemeGroupVersion.WithKind("Pod"), resource, pod, pod)
		if !webhooktest.Decision(t, hook, req).Allowed {
			t.Error("denied")
		}
	}
	var got strings.Builder
	for _, review := range s.reviews() {
		fmt.Fprintln(&got, review.APIVersion, review.Kind, review.Spec.Namespace, review.Spec.Containers, review.Spec.Annotations)
	}
	const want = `imagepolicy.k8s.io/v1alpha1 ImageReview team-a [{shop:v1} {init:v1}] map[a.image-policy.k8s.io/break-glass:yes]
imagepolicy.k8s.io/v1alpha1 ImageReview team-a [{debug:v1}] map[a.image-policy.k8s.io/break-glass:yes]
`
	if got.String() != want {
		t.Errorf("got\n%s", got.String())
	}
}

func TestAnswersAreKept(t *testing.T) {
	for _, row := range []struct {
		allowed bool
		config  Config
		want    int
	}{
		{true, Config{AllowFor: time.Hour}, 1},
		{true, Config{DenyFor: time.Hour}, 2},
		{false, Config{DenyFor: time.Hour}, 1},
		{false, Config{AllowFor: time.Hour}, 2},
	} {
		s := serve(t, status(v1alpha1.ImageReviewStatus{Allowed: row.allowed}))
		hook := s.hook(t, row.config)
		for range 2 {
			if decision, _ := gallerytest.Call(t, hook, gallerytest.Pod(), nil); decision.Allowed != row.allowed {
				t.Errorf("allowed is %v", decision.Allowed)
			}
		}
		if got := len(s.reviews()); got != row.want {
			t.Errorf("%+v: got %d reviews", row, got)
		}
	}
}

func TestFailures(t *testing.T) {
	const status403 = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"go away","code":403}`
	rows := []struct {
		reason  string
		answer  func(http.ResponseWriter, *http.Request, *v1alpha1.ImageReview)
		reviews int
		want    string // the start of the message
	}{
		{"an internal error may be temporary", code(http.StatusInternalServerError, ""), 5, `pods "shop" is forbidden: an error on the server`},
		{"an overload may be temporary", code(http.StatusTooManyRequests, ""), 5, `pods "shop" is forbidden: the server has received too many requests`},
		{"a wrong path is permanent", code(http.StatusNotFound, ""), 1, `pods "shop" is forbidden: the server could not find the requested resource`},
		{"garbage", code(http.StatusOK, "<html>"), 1, `pods "shop" is forbidden: couldn't get version/kind; json parse error: `},
		{"another kind", code(http.StatusOK, `{"apiVersion":"v1","kind":"Pod"}`), 1, `pods "shop" is forbidden: no kind "Pod" is registered`},
		{"the service does not accept the hook", code(http.StatusForbidden, status403), 1, `go away`},
		{"the connection breaks", func(http.ResponseWriter, *http.Request, *v1alpha1.ImageReview) { panic(http.ErrAbortHandler) }, 1, `pods "shop" is forbidden: Post "https://127.0.0.1:`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			s := serve(t, row.answer)
			decision, _ := gallerytest.Call(t, s.hook(t, Config{}), gallerytest.Pod(), nil)
			if decision.Allowed || decision.Result.Code != http.StatusForbidden || !strings.HasPrefix(decision.Result.Message, row.want) {
				t.Errorf("got %+v", decision.Result)
			}
			if got := len(s.reviews()); got != row.reviews {
				t.Errorf("got %d reviews", got)
			}
			decision, _ = gallerytest.Call(t, s.hook(t, Config{DefaultAllow: true}), gallerytest.Pod(), nil)
			if !decision.Allowed || !maps.Equal(decision.AuditAnnotations, map[string]string{"failed-open": "true"}) {
				t.Errorf("got %+v", decision)
			}
		})
	}
}

// TestTheServiceHangs checks that the hook decides before the API server stops waiting.
func TestTheServiceHangs(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ http.ResponseWriter, r *http.Request, _ *v1alpha1.ImageReview) { <-r.Context().Done() })
	for _, allow := range []bool{false, true} {
		review := gallerytest.Pod()
		req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", review, nil)
		decision := decisionWithin(t, s.hook(t, Config{DefaultAllow: allow}), req, "2s")
		if decision.Allowed != allow || !allow && decision.Result.Message != `pods "shop" is forbidden: no answer in time: context deadline exceeded` {
			t.Errorf("got %+v", decision)
		}
	}
}

// decisionWithin calls the hook with this timeout in the URL, as the API server does.
func decisionWithin(t *testing.T, hook http.Handler, req *admissionv1.AdmissionRequest, timeout string) *admissionv1.AdmissionResponse {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: req}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?timeout="+timeout, strings.NewReader(string(body)))
	call.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, call)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	return answer.Response
}

// TestOutagesOpenTheCircuit checks that outages of the service open the circuit. An answer about one question does not,
// nor does an outage if it admits the Pod: a user could then provoke failures to have other images admitted.
func TestOutagesOpenTheCircuit(t *testing.T) {
	for _, row := range []struct {
		reason  string
		answer  func(http.ResponseWriter, *http.Request, *v1alpha1.ImageReview)
		gone    bool
		config  Config
		reviews int
		open    bool
	}{
		{"code 500", code(http.StatusInternalServerError, ""), false, Config{OpenAfter: 2}, 4 * 5, false},
		{"code 401", code(http.StatusUnauthorized, ""), false, Config{OpenAfter: 2}, 4, false},
		{"the service is gone", code(http.StatusOK, ""), true, Config{OpenAfter: 2}, 0, true},
		{"gone, and Pods are admitted", code(http.StatusOK, ""), true, Config{OpenAfter: 2, DefaultAllow: true}, 0, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s := serve(t, row.answer)
			hook := s.hook(t, row.config)
			if row.gone {
				s.close()
			}
			open := false
			for i := range 4 {
				decision, _ := gallerytest.Call(t, hook, gallerytest.Pod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = fmt.Sprint("a:v", i) }), nil)
				if decision.Allowed != row.config.DefaultAllow {
					t.Errorf("allowed is %v", decision.Allowed)
				}
				open = !decision.Allowed && strings.HasSuffix(decision.Result.Message, "not asked, because the last questions failed")
			}
			if got := len(s.reviews()); got != row.reviews || open != row.open {
				t.Errorf("got %d reviews, and the circuit is open: %v", got, open)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	s := serve(t, code(http.StatusInternalServerError, ""))
	start := time.Now()
	gallerytest.Call(t, s.hook(t, Config{Backoff: time.Millisecond}), gallerytest.Pod(), nil)
	if took := time.Since(start); took < 8*time.Millisecond || len(s.reviews()) != 5 {
		t.Errorf("took %v", took)
	}
}

func TestHookNeedsAService(t *testing.T) {
	_, err := Hook(Config{KubeConfigFile: filepath.Join(t.TempDir(), "missing")}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "imagePolicy.kubeConfigFile: ") {
		t.Errorf("got %v", err)
	}
	s := serve(t, nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "admitkit_external_total"}))
	if _, err := Hook(Config{KubeConfigFile: s.kubeconfig}, registry); err == nil {
		t.Error("want an error if the name of the counter is already taken by a gauge")
	}
	bad := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(bad, []byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'https://a b'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Hook(Config{KubeConfigFile: bad}, nil); err == nil {
		t.Error("want an error for a bad address")
	}
}

func TestLoad(t *testing.T) {
	rows := []struct{ reason, content, want string }{
		{"defaults", "imagePolicy: {kubeConfigFile: KUBE}", "{KUBE 5m0s 30s 500ms false 0}"},
		{"JSON", `{"imagePolicy":{"kubeConfigFile":"KUBE","allowTTL":1,"denyTTL":1800,"retryBackoff":1,"defaultAllow":true}}`, "{KUBE 1s 30m0s 1ms true 0}"},
		{"none", "imagePolicy: {kubeConfigFile: KUBE, allowTTL: -1, denyTTL: -1, retryBackoff: -1}", "{KUBE 0s 0s 0s false 0}"},
		{"empty", "", "FILE:1: the file is empty: must be a map with the fields imagePolicy"},
		{"no kubeconfig", "imagePolicy: {}", "FILE:1: imagePolicy.kubeConfigFile: Required value: name a kubeconfig whose cluster is the service"},
		{"a missing kubeconfig", "imagePolicy:\n  kubeConfigFile: nope\n", `FILE:2: imagePolicy.kubeConfigFile: Invalid value: "nope": must be a kubeconfig whose cluster is the service: stat nope: `},
		{"misspelt", "imagePolicy: {kubeConfigFile: KUBE, allowTtl2: 1}", "FILE:1: imagePolicy.allowTtl2: unknown field: did you mean allowTTL?"},
		{"wrong type", "imagePolicy: {kubeConfigFile: KUBE, allowTTL: 5m}", `FILE:1: imagePolicy.allowTTL: Invalid value: "5m": must be an integer`},
		{"too long", "imagePolicy: {kubeConfigFile: KUBE, allowTTL: 1801}", "FILE:1: imagePolicy.allowTTL: Invalid value: 1801: must be -1, 0, or between 1 and 1800"},
		{"negative", "imagePolicy: {kubeConfigFile: KUBE, denyTTL: -2}", "FILE:1: imagePolicy.denyTTL: Invalid value: -2: must be -1, 0, or between 1 and 1800"},
		{"huge", "imagePolicy: {kubeConfigFile: KUBE, retryBackoff: 9223372036854775807}", "FILE:1: imagePolicy.retryBackoff: Invalid value: 9223372036854775807: must be -1, 0, or between 1 and 300000"},
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'https://a'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(row.content, "KUBE", kubeconfig)), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := Load(file)
			got := strings.ReplaceAll(fmt.Sprint(config), kubeconfig, "KUBE")
			if err != nil {
				got = strings.ReplaceAll(err.Error(), file, "FILE")
			}
			if !strings.HasPrefix(got, row.want) {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("want an error for a file that does not exist")
	}
}
