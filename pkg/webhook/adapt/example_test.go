// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/adapt"
)

// teamValidator was written for controller-runtime.
type teamValidator struct{}

func (teamValidator) ValidateCreate(_ context.Context, cm *corev1.ConfigMap) (admission.Warnings, error) {
	if cm.Labels["team"] == "" {
		return nil, errors.New("say which team it belongs to")
	}
	return nil, nil
}

func (v teamValidator) ValidateUpdate(ctx context.Context, _, cm *corev1.ConfigMap) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, cm)
}

func (teamValidator) ValidateDelete(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

// The validator needs no change. The registration replaces the marker comment of controller-gen.
func ExampleValidator() {
	hook := adapt.Validator(admissionregistrationv1.ValidatingWebhook{
		Name:  "team.example.com",
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "configmaps")),
	}, teamValidator{})

	// In a cluster, the API server calls the hook. In a test, use package webhooktest.
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
			"uid": "1", "operation": "CREATE", "kind": {"version": "v1", "kind": "ConfigMap"},
			"resource": {"version": "v1", "resource": "configmaps"}, "name": "prices", "namespace": "shop",
			"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices"}}}}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(review.Response.Allowed, review.Response.Result.Code, review.Response.Result.Message)
	// Output: false 403 say which team it belongs to
}
