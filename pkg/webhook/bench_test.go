// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// benchObject is a Pod as an API server writes it, with about this many bytes.
func benchObject(size int) string {
	const container = `{"name":"app-%d","image":"registry.example.com/team/web:v1.42.0","args":["--listen=:8080","--log-level=info"],` +
		`"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"REGION","value":"eu-west-1"},{"name":"NODE",` +
		`"valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"spec.nodeName"}}}],"resources":{"limits":{"memory":"512Mi"},"requests":` +
		`{"cpu":"250m","memory":"256Mi"}},"volumeMounts":[{"name":"config","readOnly":true,"mountPath":"/etc/web"}],` +
		`"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}`
	var containers []string
	for n := 0; n < size-800; n += len(container) {
		containers = append(containers, fmt.Sprintf(container, len(containers)))
	}
	return `{"kind":"Pod","apiVersion":"v1","metadata":{"generateName":"web-7d4b9c6f5-","namespace":"shop","labels":{"app":"web","pod-template-hash":"7d4b9c6f5"},` +
		`"annotations":{"prometheus.io/scrape":"true"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d4b9c6f5",` +
		`"uid":"0c4e7b0e-5f5f-11e8-bc74-36e6bb280816","controller":true,"blockOwnerDeletion":true}]},"spec":{"volumes":[{"name":"config","configMap":` +
		`{"name":"web","defaultMode":420}}],"containers":[` + strings.Join(containers, ",") + `],"restartPolicy":"Always","terminationGracePeriodSeconds":30,` +
		`"dnsPolicy":"ClusterFirst","serviceAccountName":"web","securityContext":{},"schedulerName":"default-scheduler","enableServiceLinks":true},"status":{}}`
}

var errTag = errors.New("an image has no tag")

func validatePod(pod *corev1.Pod) error {
	for i := range pod.Spec.Containers {
		if !strings.Contains(pod.Spec.Containers[i].Image, ":") {
			return errTag
		}
	}
	return nil
}

func mutatePod(pod *corev1.Pod) error {
	pod.Labels["example.com/proxy"] = "yes"
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Image: "registry.example.com/proxy:v2"})
	return nil
}

// injected is a projection of a Pod for the same mutation; its containers hold what the proxy
// needs of them.
type injected struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Containers []struct {
			Name  string `json:"name"`
			Image string `json:"image"`
		} `json:"containers"`
	} `json:"spec"`
}

func validateInjected(pod *injected) error {
	for _, c := range pod.Spec.Containers {
		if !strings.Contains(c.Image, ":") {
			return errTag
		}
	}
	return nil
}

func mutateInjected(pod *injected) error {
	pod.Metadata.Labels["example.com/proxy"] = "yes"
	n := len(pod.Spec.Containers)
	pod.Spec.Containers = append(pod.Spec.Containers, pod.Spec.Containers[0])
	pod.Spec.Containers[n].Name, pod.Spec.Containers[n].Image = "proxy", "registry.example.com/proxy:v2"
	return nil
}

func benchMutating[T any](mutate func(*T) error) http.Handler {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "bench.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[T]) error { return mutate(req.Object) })
}

func benchValidating[T any](validate func(*T) error) http.Handler {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "bench.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[T]) error { return validate(req.Object) })
}

// crHandler plugs a function into controller-runtime.
type crHandler func(*corev1.Pod) error

func (f crHandler) Default(_ context.Context, pod *corev1.Pod) error { return f(pod) }
func (f crHandler) ValidateCreate(_ context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	return nil, f(pod)
}
func (f crHandler) ValidateUpdate(context.Context, *corev1.Pod, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}
func (f crHandler) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

// BenchmarkHook measures one call, from the body to the answer, without a network.
func BenchmarkHook(b *testing.B) {
	nothing := func(*corev1.Pod) error { return nil }
	for _, size := range []int{2_000, 9_000, 200_000} {
		body := call{object: benchObject(size)}.body()
		for _, bench := range []struct {
			name    string
			handler http.Handler
			patches bool
		}{
			{"validate/admitkit", benchValidating(validatePod), false},
			{"validate/projection", benchValidating(validateInjected), false},
			{"validate/controller-runtime", admission.WithValidator[*corev1.Pod](scheme.Scheme, crHandler(validatePod)), false},
			{"noop/admitkit", benchMutating(nothing), false},
			{"noop/projection", benchMutating(func(*injected) error { return nil }), false},
			{"noop/controller-runtime", admission.WithDefaulter[*corev1.Pod](scheme.Scheme, crHandler(nothing)), false},
			{"mutate/admitkit", benchMutating(mutatePod), true},
			{"mutate/projection", benchMutating(mutateInjected), true},
			{"mutate/controller-runtime", admission.WithDefaulter[*corev1.Pod](scheme.Scheme, crHandler(mutatePod)), true},
		} {
			b.Run(fmt.Sprintf("%s/%dKB", bench.name, len(body)/1000), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/?timeout=10s", bytes.NewReader(body))
					r.Header.Set("Content-Type", "application/json")
					w := httptest.NewRecorder()
					bench.handler.ServeHTTP(w, r)
					if w.Code != http.StatusOK || bytes.Contains(w.Body.Bytes(), []byte(`"patch":`)) != bench.patches {
						b.Fatalf("%d %.500s", w.Code, w.Body)
					}
				}
			})
		}
	}
}
