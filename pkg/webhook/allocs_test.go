// SPDX-License-Identifier: Apache-2.0

//go:build !race

package webhook_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// The allocations in this file are counted without the race detector: with it, a sync.Pool drops values at random.

// usualPod is a Pod of a ReplicaSet as the API server sends it. Its AdmissionReview is 2 KB long.
const usualPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"generateName":"web-7d4b9c6f5-","namespace":"shop","uid":"8b0c6d3e-4a57-4d0c-9d0e-2f1f7c1b9a55",` +
	`"creationTimestamp":"2026-03-14T15:09:26Z","labels":{"app.kubernetes.io/name":"web","pod-template-hash":"7d4b9c6f5"},` +
	`"annotations":{"example.com/note":"owner \u003cshop@example.com\u003e \u0026 \"friends\""},"ownerReferences":[{"apiVersion":"apps/v1",` +
	`"kind":"ReplicaSet","name":"web-7d4b9c6f5","uid":"0c4e7b0e-5f5f-11e8-bc74-36e6bb280816","controller":true,"blockOwnerDeletion":true}]},` +
	`"spec":{"volumes":[{"name":"config","configMap":{"name":"web","defaultMode":420}}],"containers":[{"name":"app-0",` +
	`"image":"registry.example.com/team/web:v1.42.0","command":["/bin/sh","-c","exec /web --listen=:8080 \u003e/proc/1/fd/1 2\u003e\u00261"],` +
	`"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"NODE","valueFrom":{"fieldRef":{"apiVersion":"v1",` +
	`"fieldPath":"spec.nodeName"}}}],"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"250m","memory":"256Mi"}},` +
	`"volumeMounts":[{"name":"config","readOnly":true,"mountPath":"/etc/web"}],"terminationMessagePath":"/dev/termination-log",` +
	`"terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,` +
	`"dnsPolicy":"ClusterFirst","serviceAccountName":"web","securityContext":{},"schedulerName":"default-scheduler","enableServiceLinks":true},"status":{}}`

const usualUser = `"userInfo":{"username":"system:serviceaccount:kube-system:replicaset-controller","uid":"a7b4b1b4-9f66-4f5d-a3a9-0a3d3c2e5f10",` +
	`"groups":["system:serviceaccounts","system:serviceaccounts:kube-system","system:authenticated"]}`

// podView is a projection of a Pod for an injector.
type podView struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Containers []containerView `json:"containers"`
	} `json:"spec"`
}

type containerView struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

func injectPod(pod *corev1.Pod) {
	pod.Annotations["example.com/injected"] = "true"
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:v2"})
}

func injectView(pod *podView) {
	pod.Metadata.Annotations["example.com/injected"] = "true"
	pod.Spec.Containers = append(pod.Spec.Containers, containerView{"proxy", "proxy:v2"})
}

// allocations returns the number of allocations of a call. About 21 of them are for the request and the recorder of the
// test. The call must answer with a patch if patches is true, and without one otherwise.
func allocations(t *testing.T, hook *webhook.Hook, patches bool) float64 {
	t.Helper()
	body := call{object: usualPod, namespace: "shop", options: `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`,
		more: `"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"},"dryRun":false,` + usualUser}.body()
	return testing.AllocsPerRun(200, func() {
		r := httptest.NewRequest(http.MethodPost, "/?timeout=10s", bytes.NewReader(body)) //nolint:noctx // its cost is known
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, r)
		if w.Code != http.StatusOK || bytes.Contains(w.Body.Bytes(), []byte(`"patch":`)) != patches {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}

func TestAllocationsOfACall(t *testing.T) {
	raw := webhook.ValidatingRaw(admissionregistrationv1.ValidatingWebhook{Name: "raw.example.com", Rules: everything},
		func(context.Context, *review.Request) (*review.Decision, error) { return review.Allow(), nil })
	denied := validateOf(func(*struct{}) error { return errNo })
	validateTyped := allocations(t, validateOf(func(*corev1.Pod) error { return nil }), false)
	validateView := allocations(t, validateOf(func(*podView) error { return nil }), false)
	for _, row := range []struct {
		reason    string
		got, most float64
	}{
		{"nothing of the object: the memory of the call, a timer and a function", allocations(t, validateOf(func(*struct{}) error { return nil }), false), 24},
		{"a denial: its error, a copy of the status, and what the handler makes", allocations(t, denied, false), 26},
		{"bytes: they are the handler's", allocations(t, raw, false), 26},
		{"typed, validated", validateTyped, 55},
		{"typed, not changed: nothing more", allocations(t, mutateOf(func(*corev1.Pod) {}), false), validateTyped},
		{"typed, two operations", allocations(t, mutateOf(injectPod), true), validateTyped + 8},
		{"a projection, validated", validateView, 30},
		{"a projection, not changed: nothing more", allocations(t, mutateOf(func(*podView) {}), false), validateView},
		{"a projection, two operations", allocations(t, mutateOf(injectView), true), validateView + 8},
	} {
		if row.got > row.most {
			t.Errorf("%s: %v allocations, want %v at most", row.reason, row.got, row.most)
		} else {
			t.Logf("%s: %v allocations of %v", row.reason, row.got, row.most)
		}
	}
}

var errNo = webhook.Deny("no")

func validateOf[T any](validate func(*T) error) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "any.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[T]) error { return validate(req.Object) })
}

func mutateOf[T any](mutate func(*T)) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "any.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[T]) error { mutate(req.Object); return nil })
}
