// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"errors"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/internal/customresource"
	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// Objects creates, defaults and converts objects. It treats objects with Go types as the API server treats its own, and
// all others as custom resources. A built-in object without TypeMeta stands for the API server's internal version.
type Objects struct {
	scheme   *runtime.Scheme
	defaults func(runtime.Object)
	Custom   map[schema.GroupKind]*customResource
	added    bool // the scheme has types that are not Kubernetes' own

	serializer  runtime.Serializer
	convertible sync.Map // from a kind to the versions to which it converts
}

// NewObjects returns Objects for Kubernetes' own types, for the types that the functions in types add, and for custom
// resources. setDefaults can be nil.
func NewObjects(types []func(*runtime.Scheme) error, crds []*apiextensionsv1.CustomResourceDefinition, setDefaults func(runtime.Object)) (*Objects, error) {
	all := &Objects{scheme: strategy.BuiltIn(), defaults: setDefaults, Custom: map[schema.GroupKind]*customResource{}}
	all.serializer = json.NewSerializerWithOptions(json.DefaultMetaFactory, all, all, json.SerializerOptions{})
	if len(types) > 0 {
		all.scheme, all.added = runtime.NewScheme(), true
		utilruntime.Must(scheme.AddToScheme(all.scheme))
		utilruntime.Must(apiextensionsv1.AddToScheme(all.scheme))
		for _, add := range types {
			if err := add(all.scheme); err != nil {
				return nil, fmt.Errorf("Options.Types: cannot add the Go types to the scheme: %w", err)
			}
		}
	}
	for _, definition := range crds {
		r, err := newCustomResource(definition)
		if err != nil {
			return nil, err
		}
		all.Custom[schema.GroupKind{Group: r.Definition.Spec.Group, Kind: r.Definition.Spec.Names.Kind}] = r
	}
	return all, nil
}

// New implements runtime.ObjectCreater.
func (o *Objects) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if o.scheme.Recognizes(kind) {
		return o.scheme.New(kind)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// ObjectKinds implements runtime.ObjectTyper.
func (o *Objects) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if _, ok := obj.(runtime.Unstructured); !ok {
		return o.scheme.ObjectKinds(obj)
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	switch {
	case kind.Kind == "":
		return nil, false, runtime.NewMissingKindErr("unstructured object has no kind")
	case kind.Version == "":
		return nil, false, runtime.NewMissingVersionErr("unstructured object has no version")
	}
	return []schema.GroupVersionKind{kind}, false, nil
}

// Recognizes implements runtime.ObjectTyper.
func (o *Objects) Recognizes(schema.GroupVersionKind) bool { return true }

// Default implements runtime.ObjectDefaulter.
func (o *Objects) Default(obj runtime.Object) {
	if r := o.customOf(obj); r != nil {
		r.Default(obj.(*unstructured.Unstructured))
	}
	if _, ok := obj.(runtime.Unstructured); ok {
		return
	}
	if o.added {
		o.scheme.Default(obj)
	}
	if o.defaults != nil {
		o.defaults(obj)
	}
}

// Convert implements runtime.ObjectConvertor.
func (o *Objects) Convert(in, out, context any) error {
	from, ok := in.(*unstructured.Unstructured)
	if !ok {
		return o.scheme.Convert(in, out, context)
	}
	if r := o.customOf(from); r != nil {
		return r.convertor.Convert(in, out, context)
	}
	to, ok := out.(*unstructured.Unstructured)
	if !ok && o.scheme.Recognizes(from.GroupVersionKind()) { // the result of a mutating policy
		return o.scheme.Convert(in, out, context)
	}
	if !ok {
		return fmt.Errorf("cannot convert an unstructured object to %T", out)
	}
	kind, content := to.GroupVersionKind(), from.UnstructuredContent()
	if !kind.Empty() && kind.GroupVersion() != from.GroupVersionKind().GroupVersion() {
		return fmt.Errorf("converting (%v) to (%v): no schema is known", from.GroupVersionKind(), kind)
	}
	to.SetUnstructuredContent(content)
	return nil
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (o *Objects) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	if r := o.customOf(in); r != nil {
		return r.convertor.ConvertToVersion(in, to)
	}
	if u, ok := in.(*unstructured.Unstructured); ok && !o.scheme.Recognizes(u.GroupVersionKind()) {
		return in, nil
	}
	return o.scheme.UnsafeConvertToVersion(in, to)
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (o *Objects) ConvertFieldLabel(kind schema.GroupVersionKind, label, value string) (string, string, error) {
	return o.scheme.ConvertFieldLabel(kind, label, value)
}

// Encode encodes an object as the API server does. It sets the kind and the apiVersion of a built-in object.
func (o *Objects) Encode(obj runtime.Object, kind schema.GroupVersionKind) ([]byte, error) {
	if _, ok := obj.(*unstructured.Unstructured); !ok {
		// The admission code may still use the object, so its TypeMeta must not change.
		before := obj.GetObjectKind().GroupVersionKind()
		obj.GetObjectKind().SetGroupVersionKind(kind)
		defer obj.GetObjectKind().SetGroupVersionKind(before)
	}
	return runtime.Encode(o.serializer, obj)
}

// internal removes the TypeMeta of a built-in object, so that it stands for the internal version. It returns the
// object.
func (o *Objects) internal(obj runtime.Object) runtime.Object {
	if _, ok := obj.(runtime.Unstructured); !ok {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}

// customOf returns the definition of a custom resource. It returns nil for other objects, and if there is no
// definition.
func (o *Objects) customOf(obj runtime.Object) *customResource {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	return o.Custom[u.GroupVersionKind().GroupKind()]
}

// CustomVersion returns the definition of a version of a custom resource, or nil if there is none.
func (o *Objects) CustomVersion(kind schema.GroupVersionKind) *customresource.Version {
	r := o.Custom[kind.GroupKind()]
	if r == nil {
		return nil
	}
	return r.Versions[kind.Version]
}

// errNotServed is the error of a request for a version that the API server does not serve.
var errNotServed = errors.New("this version of the custom resource is not served")

func (o *Objects) serves(kind schema.GroupVersionKind) error {
	r := o.Custom[kind.GroupKind()]
	if r == nil {
		return nil
	}
	if v := r.Versions[kind.Version]; v == nil || !v.Served {
		return fmt.Errorf("%s: %w", kind, errNotServed)
	}
	return nil
}
