// SPDX-License-Identifier: Apache-2.0

// Package adapt returns hooks for handlers that were written for controller-runtime.
//
// The handlers behave as in controller-runtime. An error of a Defaulter or a Validator denies the
// request, while an error of a handler of package webhook is a failure to decide. A Response is
// sent unchanged, except for values that the API server would refuse. Decoding, patches, deadlines
// and panics are handled as in package webhook.
//
// Package adapt is separate because controller-runtime's package admission adds client-go's typed
// clients to the program. The hooks are safe for concurrent use if the handlers are.
package adapt

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// pointer is the type constraint for a pointer to an API type T.
type pointer[T any] interface {
	*T
	runtime.Object
}

// Defaulter returns a mutating hook that calls d for every operation except DELETE. The context
// holds the admission.Request. For a deprecated CustomDefaulter, use [MutatingHandler] with
// admission.WithCustomDefaulter.
func Defaulter[P pointer[T], T any](reg admissionregistrationv1.MutatingWebhook, d admission.Defaulter[P]) *webhook.Hook {
	return webhook.Mutating(reg, func(ctx context.Context, req *webhook.Request[T]) error {
		if req.Operation == admissionv1.Delete {
			return nil
		}
		return denying(d.Default(withRequest(ctx, req), req.Object))
	})
}

// Validator returns a validating hook that calls v for CREATE, UPDATE and DELETE. Do not register
// it for CONNECT, whose objects have another kind: such a call fails. The context holds the
// admission.Request. For a deprecated CustomValidator, use [ValidatingHandler] with
// admission.WithCustomValidator.
func Validator[P pointer[T], T any](reg admissionregistrationv1.ValidatingWebhook, v admission.Validator[P]) *webhook.Hook {
	return webhook.Validating(reg, func(ctx context.Context, req *webhook.Request[T]) error {
		old, err := req.OldObject()
		if err != nil {
			return err
		}
		ctx = withRequest(ctx, req)
		var warnings admission.Warnings
		switch req.Operation {
		case admissionv1.Create:
			warnings, err = v.ValidateCreate(ctx, req.Object)
		case admissionv1.Update:
			warnings, err = v.ValidateUpdate(ctx, old, req.Object)
		case admissionv1.Delete:
			warnings, err = v.ValidateDelete(ctx, old)
		}
		for _, text := range warnings {
			req.Warn(text)
		}
		return denying(err)
	})
}

func withRequest[T any](ctx context.Context, req *webhook.Request[T]) context.Context {
	return admission.NewContextWithRequest(ctx, admission.Request{AdmissionRequest: *req.AdmissionRequest()})
}

// denying turns every error into a denial, as controller-runtime does. An API error keeps its
// status, whatever its code. Any other error becomes 403 Forbidden.
func denying(err error) error {
	var api apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api):
		return webhook.DenyStatus(api.Status())
	}
	return webhook.Deny(err.Error())
}

// MutatingHandler returns a mutating hook that calls h and sends its patches.
func MutatingHandler(reg admissionregistrationv1.MutatingWebhook, h admission.Handler) *webhook.Hook {
	return webhook.MutatingRaw(reg, func(ctx context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
		return handle(ctx, h, req)
	})
}

// ValidatingHandler returns a validating hook that calls h. The patches of h are not sent.
func ValidatingHandler(reg admissionregistrationv1.ValidatingWebhook, h admission.Handler) *webhook.Hook {
	return webhook.ValidatingRaw(reg, func(ctx context.Context, req *review.Request) (*review.Decision, error) {
		d, _, err := handle(ctx, h, req)
		return d, err
	})
}

func handle(ctx context.Context, h admission.Handler, wire *review.Request) (*review.Decision, patch.Patch, error) {
	req := admission.Request{AdmissionRequest: *wire.AdmissionRequest()}
	resp := h.Handle(ctx, req)
	if err := resp.Complete(req); err != nil {
		return nil, nil, err
	}
	d := review.Allow()
	for _, text := range resp.Warnings {
		d.Warn(text)
	}
	for key, value := range resp.AuditAnnotations {
		if err := d.Audit(key, value); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "the API server would drop an audit annotation")
		}
	}
	if !resp.Allowed {
		d.Deny(*resp.Result)
		return d, nil, nil
	}
	if len(resp.Patch) == 0 {
		return d, nil, nil
	}
	p, err := patch.Parse(resp.Patch)
	return d, p, err
}
