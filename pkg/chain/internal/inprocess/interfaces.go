// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// Interfaces implements the API server's admission.ObjectInterfaces for one run.
type Interfaces struct {
	*Objects
	kind    schema.GroupVersionKind // of the request's object
	current *runtime.Object         // receives the object after each patch
}

var _ admission.ObjectInterfaces = Interfaces{}

// GetObjectCreater implements admission.ObjectInterfaces.
func (i Interfaces) GetObjectCreater() runtime.ObjectCreater { return i }

// GetObjectTyper implements admission.ObjectInterfaces.
func (i Interfaces) GetObjectTyper() runtime.ObjectTyper { return i.Objects }

// GetObjectDefaulter implements admission.ObjectInterfaces.
func (i Interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return i }

// GetObjectConvertor implements admission.ObjectInterfaces.
func (i Interfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }

// GetEquivalentResourceMapper implements admission.ObjectInterfaces.
func (i Interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return equivalents{i.Objects, i.kind}
}

// New returns an empty object of a kind. The kind can differ from the request's, for example after a patch. If the
// request's kind has a Go type, a kind without one is an error.
func (i Interfaces) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if i.scheme.Recognizes(i.kind) {
		return i.scheme.New(kind)
	}
	return i.Objects.New(kind)
}

// Convert converts a custom resource by the definition of the request's kind, even if a patch changed the kind.
func (i Interfaces) Convert(in, out, context any) error {
	if r := i.Custom[i.kind.GroupKind()]; r != nil {
		if _, ok := in.(*unstructured.Unstructured); ok {
			return r.convertor.Convert(in, out, context)
		}
	}
	return i.Objects.Convert(in, out, context)
}

// Default sets the defaults of the object after a patch, and records it as the current object.
func (i Interfaces) Default(obj runtime.Object) {
	i.Objects.Default(obj)
	*i.current = obj
}
