// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// interfaces gives the admission code access to objects during one run.
type interfaces struct {
	*objects
	kind    schema.GroupVersionKind // of the request's object
	current *runtime.Object         // receives the object after each patch
}

var _ admission.ObjectInterfaces = interfaces{}

func (i interfaces) GetObjectCreater() runtime.ObjectCreater     { return i }
func (i interfaces) GetObjectTyper() runtime.ObjectTyper         { return i.objects }
func (i interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return i }
func (i interfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }
func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return equivalents{i.objects, i.kind}
}

// New is called when a patch changes the kind of the object.
func (i interfaces) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if i.scheme.Recognizes(i.kind) {
		return i.scheme.New(kind)
	}
	return i.objects.New(kind)
}

// Convert converts a custom resource by the definition of the requested kind, even if a patch changed the kind.
func (i interfaces) Convert(in, out, context any) error {
	if r := i.custom[i.kind.GroupKind()]; r != nil {
		if _, ok := in.(*unstructured.Unstructured); ok {
			return r.convertor.Convert(in, out, context)
		}
	}
	return i.objects.Convert(in, out, context)
}

// Default is called after a patch was applied.
func (i interfaces) Default(obj runtime.Object) {
	i.objects.Default(obj)
	*i.current = obj
}
