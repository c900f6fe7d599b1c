// SPDX-License-Identifier: Apache-2.0

package reads_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

const manyNamespaces = 10_000

// many starts an API server with Namespaces that look like those of a cluster, and returns a reader whose informer has
// read them.
func many(t testing.TB) *reads.Reader[*corev1.Namespace] {
	t.Helper()
	list := corev1.NamespaceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range manyNamespaces {
		name := fmt.Sprintf("team-%d", i)
		list.Items = append(list.Items, corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: "0b7ac9b6-1f4d-4a0e-9d52-1f5f0f1c9f11", ResourceVersion: "1", CreationTimestamp: metav1.Unix(1700000000, 0),
				Labels:      map[string]string{corev1.LabelMetadataName: name, "team": name, "pod-security.kubernetes.io/enforce": "baseline"},
				Annotations: map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "env=test"},
			},
			Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
		})
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity) // the informer then sends a list
		case query.Get("watch") != "":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = w.Write(encoded)
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	lister := factory.Core().V1().Namespaces().Lister()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() { stop(); factory.Shutdown() })
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(t.Context().Done())
	r, err := reads.New(reads.Options[*corev1.Namespace]{
		Resource: "namespaces",
		Cached:   func(_, name string) (*corev1.Namespace, error) { return lister.Get(name) },
		Live: func(ctx context.Context, _, name string) (*corev1.Namespace, error) {
			return client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMemoryOfManyNamespaces prints what each object in the cache of an informer takes. The limit is ten times as much as
// the JSON of such a Namespace.
func TestMemoryOfManyNamespaces(t *testing.T) {
	before := heap()
	r := many(t)
	each := float64(heap()-before) / manyNamespaces
	t.Logf("%d Namespaces take %.0f bytes each, with the response of the API server", manyNamespaces, each)
	if each < 100 || each > 6000 {
		t.Errorf("a Namespace takes %.0f bytes", each)
	}
	if got, err := r.Get(t.Context(), "", "team-9999"); err != nil || got.Labels["team"] != "team-9999" {
		t.Errorf("got %v, %v", got, err)
	}
}

// heap returns the size of all live objects.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkCallWithManyNamespaces measures calls of a hook that reads the Namespace of each Pod, with a full cache. It
// reports the time that 99 of 100 calls take at most.
func BenchmarkCallWithManyNamespaces(b *testing.B) {
	namespaces := many(b)
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "teams.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		_, err := namespaces.Get(ctx, "", req.Namespace)
		return err
	})
	bodies := make([][]byte, 500)
	for i := range bodies {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: fmt.Sprintf("team-%d", i*20)}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "shop:v1"}}
		review := admissionv1.AdmissionReview{Request: webhooktest.Request(b, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", pod, nil)}
		review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
		var err error
		if bodies[i], err = json.Marshal(review); err != nil {
			b.Fatal(err)
		}
	}
	var times []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/?timeout=10s", bytes.NewReader(bodies[i%len(bodies)]))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if hook.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}
