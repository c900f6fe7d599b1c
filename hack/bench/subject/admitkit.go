// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var rules = webhook.Rules(webhook.OnWrite("*", "*", "*"))

func admitkitMutating[T any](mutate func(*T) error) http.Handler {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "bench.example.com", Rules: rules},
		func(_ context.Context, req *webhook.Request[T]) error { return mutate(req.Object) }).WithLogger(logger)
}

func admitkitValidating[T any](validate func(*T) error, update func(old, object *T) error) http.Handler {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "bench.example.com", Rules: rules},
		func(_ context.Context, req *webhook.Request[T]) error {
			if req.Operation != admissionv1.Update {
				return validate(req.Object)
			}
			old, err := req.OldObject()
			if err != nil {
				return err
			}
			return update(old, req.Object)
		}).WithLogger(logger)
}
