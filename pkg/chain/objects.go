// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// objects make, name, default and convert objects: those with Go types as the API server does
// its own, all others as it does custom resources. A built-in object stands for the API server's
// internal version too, and has no TypeMeta then.
type objects struct {
	scheme   *runtime.Scheme
	defaults func(runtime.Object)
	custom   map[schema.GroupKind]*customResource
	added    bool // types other than Kubernetes' own

	serializer  runtime.Serializer
	convertible sync.Map // of kinds to their versions
}

func newObjects(o *Options) (*objects, error) {
	all := &objects{scheme: strategy.BuiltIn(), defaults: o.Default, custom: map[schema.GroupKind]*customResource{}}
	all.serializer = json.NewSerializerWithOptions(json.DefaultMetaFactory, all, all, json.SerializerOptions{})
	if len(o.Types) > 0 {
		all.scheme, all.added = runtime.NewScheme(), true
		utilruntime.Must(scheme.AddToScheme(all.scheme))
		utilruntime.Must(apiextensionsv1.AddToScheme(all.scheme))
		for _, add := range o.Types {
			if err := add(all.scheme); err != nil {
				return nil, fmt.Errorf("cannot add types: %w", err)
			}
		}
	}
	for _, definition := range o.CRDs {
		r, err := newCustomResource(definition)
		if err != nil {
			return nil, err
		}
		all.custom[schema.GroupKind{Group: r.Definition.Spec.Group, Kind: r.Definition.Spec.Names.Kind}] = r
	}
	return all, nil
}

// New implements runtime.ObjectCreater.
func (o *objects) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if o.scheme.Recognizes(kind) {
		return o.scheme.New(kind)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// ObjectKinds implements runtime.ObjectTyper.
func (o *objects) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
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
func (o *objects) Recognizes(schema.GroupVersionKind) bool { return true }

// Default implements runtime.ObjectDefaulter.
func (o *objects) Default(obj runtime.Object) {
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
func (o *objects) Convert(in, out, context any) error {
	from, ok := in.(*unstructured.Unstructured)
	if !ok {
		return o.scheme.Convert(in, out, context)
	}
	if r := o.customOf(from); r != nil {
		return r.convertor.Convert(in, out, context)
	}
	to, ok := out.(*unstructured.Unstructured)
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
func (o *objects) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	if r := o.customOf(in); r != nil {
		return r.convertor.ConvertToVersion(in, to)
	}
	if _, ok := in.(*unstructured.Unstructured); ok {
		return in, nil
	}
	return o.scheme.UnsafeConvertToVersion(in, to)
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (o *objects) ConvertFieldLabel(kind schema.GroupVersionKind, label, value string) (string, string, error) {
	return o.scheme.ConvertFieldLabel(kind, label, value)
}

// interfaces are what the admission code is given: its own for each run, which is told of every
// object that a patch made.
type interfaces struct {
	*objects
	run *run
}

var _ admission.ObjectInterfaces = interfaces{}

func (i interfaces) GetObjectCreater() runtime.ObjectCreater     { return i }
func (i interfaces) GetObjectTyper() runtime.ObjectTyper         { return i.objects }
func (i interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return i }
func (i interfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }
func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return equivalents{i.run}
}

// New is called when a patch changes the kind of the object.
func (i interfaces) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if i.scheme.Recognizes(i.run.kind) {
		return i.scheme.New(kind)
	}
	return i.objects.New(kind)
}

// Convert converts a custom resource by the definition of the requested kind, even if a patch changed the kind.
func (i interfaces) Convert(in, out, context any) error {
	if r := i.custom[i.run.kind.GroupKind()]; r != nil {
		if _, ok := in.(*unstructured.Unstructured); ok {
			return r.convertor.Convert(in, out, context)
		}
	}
	return i.objects.Convert(in, out, context)
}

// Default is called after a patch has been applied.
func (i interfaces) Default(obj runtime.Object) {
	i.objects.Default(obj)
	i.run.current = obj
}

// encode writes an object as the API server does: built-in ones with their kind.
func (o *objects) encode(obj runtime.Object, kind schema.GroupVersionKind) ([]byte, error) {
	if _, ok := obj.(*unstructured.Unstructured); !ok {
		// The admission code may still hold the object: its TypeMeta is put back.
		before := obj.GetObjectKind().GroupVersionKind()
		obj.GetObjectKind().SetGroupVersionKind(kind)
		defer obj.GetObjectKind().SetGroupVersionKind(before)
	}
	return runtime.Encode(o.serializer, obj)
}
