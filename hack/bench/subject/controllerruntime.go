// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	apiv1 "github.com/admitkit/admitkit/hack/bench/api/v1"
)

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	ctrllog.SetLogger(logger)
	return s
}

func crMutating[O runtime.Object](mutate func(O) error) http.Handler {
	return admission.WithDefaulter(scheme, crFuncs[O]{create: mutate})
}

func crValidating[O runtime.Object](validate func(O) error, update func(old, object O) error) http.Handler {
	return admission.WithValidator(scheme, crFuncs[O]{validate, update})
}

// crFuncs adapts functions to the interfaces of controller-runtime.
type crFuncs[O runtime.Object] struct {
	create func(O) error
	update func(old, object O) error
}

func (f crFuncs[O]) Default(_ context.Context, object O) error { return f.create(object) }

func (f crFuncs[O]) ValidateCreate(_ context.Context, object O) (admission.Warnings, error) {
	return nil, f.create(object)
}

func (f crFuncs[O]) ValidateUpdate(_ context.Context, old, object O) (admission.Warnings, error) {
	return nil, f.update(old, object)
}

func (f crFuncs[O]) ValidateDelete(context.Context, O) (admission.Warnings, error) { return nil, nil }
