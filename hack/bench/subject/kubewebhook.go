// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"net/http"

	kwhhttp "github.com/slok/kubewebhook/v2/pkg/http"
	"github.com/slok/kubewebhook/v2/pkg/model"
	kwh "github.com/slok/kubewebhook/v2/pkg/webhook"
	kwhmutating "github.com/slok/kubewebhook/v2/pkg/webhook/mutating"
	kwhvalidating "github.com/slok/kubewebhook/v2/pkg/webhook/validating"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func kwhMutating(mutate func(*corev1.Pod) error) http.Handler {
	return kwhHandler(kwhmutating.NewWebhook(kwhmutating.WebhookConfig{
		ID: "bench", Obj: &corev1.Pod{},
		Mutator: kwhmutating.MutatorFunc(func(_ context.Context, _ *model.AdmissionReview, object metav1.Object) (*kwhmutating.MutatorResult, error) {
			return &kwhmutating.MutatorResult{MutatedObject: object}, mutate(object.(*corev1.Pod))
		}),
	}))
}

func kwhValidating(validate func(*corev1.Pod) error) http.Handler {
	return kwhHandler(kwhvalidating.NewWebhook(kwhvalidating.WebhookConfig{
		ID: "bench", Obj: &corev1.Pod{},
		Validator: kwhvalidating.ValidatorFunc(func(_ context.Context, _ *model.AdmissionReview, object metav1.Object) (*kwhvalidating.ValidatorResult, error) {
			return &kwhvalidating.ValidatorResult{Valid: true}, validate(object.(*corev1.Pod))
		}),
	}))
}

func kwhHandler(hook kwh.Webhook, err error) http.Handler {
	if err != nil {
		panic(err)
	}
	return kwhhttp.MustHandlerFor(kwhhttp.HandlerConfig{Webhook: hook})
}
