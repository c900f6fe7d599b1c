// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/wI2L/jsondiff"
	gomodules "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admitkit/admitkit/hack/bench/document"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A tool generates a patch from the received document and an edit of the Go value.
type tool struct {
	name  string
	patch func(raw []byte, do func(*corev1.Pod)) ([]byte, error)
}

var tools = []tool{
	{"admitkit", func(raw []byte, do func(*corev1.Pod)) ([]byte, error) {
		return patchOf(raw, webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name: "bench.example.com", Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
		}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			do(req.Object)
			return nil
		}))
	}},
	{"controller-runtime", func(raw []byte, do func(*corev1.Pod)) ([]byte, error) {
		return patchOf(raw, admission.WithDefaulter(clientgoscheme.Scheme, defaulter(do)))
	}},
	{"gomodules/jsonpatch", func(raw []byte, do func(*corev1.Pod)) ([]byte, error) {
		_, after, err := marshalled(raw, do)
		if err != nil {
			return nil, err
		}
		p, err := gomodules.CreatePatch(raw, after)
		if err != nil || len(p) == 0 {
			return nil, err
		}
		return json.Marshal(p)
	}},
	{"jsondiff", func(raw []byte, do func(*corev1.Pod)) ([]byte, error) {
		_, after, err := marshalled(raw, do)
		if err != nil {
			return nil, err
		}
		return compared(raw, after)
	}},
	{"jsondiff of Go values", func(raw []byte, do func(*corev1.Pod)) ([]byte, error) {
		before, after, err := marshalled(raw, do)
		if err != nil {
			return nil, err
		}
		return compared(before, after)
	}},
}

type defaulter func(*corev1.Pod)

func (d defaulter) Default(_ context.Context, pod *corev1.Pod) error {
	d(pod)
	return nil
}

// patchOf returns the patch in the response of a webhook.
func patchOf(raw []byte, handler http.Handler) ([]byte, error) {
	r := httptest.NewRequest(http.MethodPost, "/?timeout=10s", bytes.NewReader(document.PodReview(raw, nil)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		return nil, err
	}
	if review.Response == nil || !review.Response.Allowed {
		return nil, fmt.Errorf("HTTP %d: %s", w.Code, w.Body)
	}
	return review.Response.Patch, nil
}

// marshalled returns the encoded Go value before and after the edit.
func marshalled(raw []byte, do func(*corev1.Pod)) (before, after []byte, err error) {
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		return nil, nil, err
	}
	if before, err = json.Marshal(&pod); err != nil {
		return nil, nil, err
	}
	do(&pod)
	after, err = json.Marshal(&pod)
	return before, after, err
}

// compared returns the patch of wI2L/jsondiff.
func compared(before, after []byte) ([]byte, error) {
	p, err := jsondiff.CompareJSON(before, after, jsondiff.LCS())
	if err != nil || len(p) == 0 {
		return nil, err
	}
	return json.Marshal(p)
}
