// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var scheme = runtime.NewScheme()

func init() {
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	ctrllog.SetLogger(logger)
}

func crMutating[O runtime.Object](mutate func(O) error) http.Handler {
	return admission.WithDefaulter(scheme, crFunc[O]{one: mutate})
}

func crValidating[O runtime.Object](validate func(O) error) http.Handler {
	return admission.WithValidator(scheme, crFunc[O]{one: validate})
}

// A crFunc plugs functions into controller-runtime.
type crFunc[O runtime.Object] struct {
	one func(O) error
}

func (f crFunc[O]) Default(_ context.Context, object O) error { return f.one(object) }

func (f crFunc[O]) ValidateCreate(_ context.Context, object O) (admission.Warnings, error) {
	return nil, f.one(object)
}

func (f crFunc[O]) ValidateUpdate(_ context.Context, _, object O) (admission.Warnings, error) {
	return nil, f.one(object)
}

func (f crFunc[O]) ValidateDelete(context.Context, O) (admission.Warnings, error) { return nil, nil }
