// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/encode"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/internal/shape"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A kind is what the objects of a run are.
type kind struct {
	schema.GroupVersionKind
	resource metav1.GroupVersionResource
	// goType is nil for custom resources, which are text to the API server.
	goType reflect.Type
	// custom is the definition of a custom resource, if there is one.
	custom *definition
	// namespaced kinds have their objects in namespaces, in this one if they name none.
	namespaced bool
	namespace  string
	// old is what the objects of an update take the place of.
	old   *object
	taken taken
	// server is a real API server, if there is one.
	server *realServer
}

// kindOf finds out about a kind. Only built-in ones have a Go type: the API server has none for
// the others.
func kindOf(gvk schema.GroupVersionKind, builtins *runtime.Scheme) *kind {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	k := &kind{GroupVersionKind: gvk, resource: metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural.Resource}, namespace: testNamespace}
	if object, err := builtins.New(gvk); err == nil {
		k.goType = reflect.TypeOf(object).Elem()
	}
	k.namespaced = !k8svalidation.ClusterScoped(schema.GroupResource{Group: gvk.Group, Resource: plural.Resource})
	return k
}

// An object is a document as the API server holds it between two calls.
type object struct {
	raw   []byte         // as it is sent
	doc   any            // the same, decoded
	typed runtime.Object // the same in Go, for a built-in kind
	// refused are the problems of the object, once they were looked for.
	refused []string
	judged  bool
	against *object // which it takes the place of, as far as these problems go
	// refusals are what a real API server said to it as a new object.
	refusals []string
}

// object has the API server take in a document: decode, default, encode again.
func (k *kind) object(doc any) (*object, error) {
	raw := tree.Encode(doc)
	if k.goType == nil && k.custom == nil && k.server == nil {
		return &object{raw: raw, doc: doc}, nil
	}
	return k.takeIn(raw)
}

// takeIn is object for a document as text.
func (k *kind) takeIn(raw []byte) (*object, error) {
	key := digestOf(raw)
	if o, ok := k.taken.objects.get(key); ok {
		return o, nil
	}
	o, err := k.decoded(raw)
	if err == nil {
		k.taken.objects.put(key, o, perByte*len(o.raw))
	}
	return o, err
}

// decoded is takeIn for what is not known.
func (k *kind) decoded(raw []byte) (*object, error) {
	if k.server != nil {
		return k.server.takeIn(raw, k.modelled)
	}
	return k.modelled(raw)
}

// modelled is decoded without an API server.
func (k *kind) modelled(raw []byte) (*object, error) {
	if k.custom != nil {
		return k.custom.takeIn(raw)
	}
	if k.goType == nil {
		doc, err := tree.Decode(raw)
		return &object{raw: raw, doc: doc}, err
	}
	value := reflect.New(k.goType)
	if err := decode.Unmarshal(raw, value.Interface()); err != nil {
		return nil, fmt.Errorf("the API server cannot decode it as a %s: %w", k.Kind, err)
	}
	typed := value.Interface().(runtime.Object)
	typed.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	k8svalidation.Default(typed)
	raw, err := encode.Append(nil, value.Elem(), shape.Of(k.goType))
	if err != nil {
		return nil, err
	}
	doc, err := tree.Decode(raw)
	return &object{raw: raw, doc: doc, typed: typed}, err
}

// problems are what the API server would refuse the object for: as a new one, or as an update.
func (k *kind) problems(o *object) []string {
	if o.judged && o.against == k.old {
		return o.refused
	}
	o.judged, o.against, o.refused = true, k.old, nil
	switch {
	case k.old != nil:
		o.refused = k.updateProblems(o, k.old)
	case k.server != nil:
		o.refused = o.refusals
	case k.custom != nil:
		o.refused = k.custom.problems(o)
	case o.typed != nil:
		o.refused = texts(k8svalidation.Validate(o.typed))
	}
	return o.refused
}

// updateProblems are what the API server would refuse an update for.
func (k *kind) updateProblems(o, old *object) []string {
	switch {
	case k.server != nil:
		return k.server.updateProblems(o, old)
	case k.custom != nil:
		return k.custom.updateProblems(o, old)
	case o.typed != nil:
		return texts(k8svalidation.ValidateUpdate(o.typed, old.typed))
	}
	return nil
}
