// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Params are the objects to which the paramRefs of bindings can refer.
type Params struct {
	// stores has the objects with their kinds for validating policies, and bare those without, as an informer of the API
	// server has them, for mutating policies.
	stores, bare map[schema.GroupVersionKind]cache.Indexer
	// scope returns whether the objects of a kind are in namespaces. It returns false if the kind is unknown.
	scope func(schema.GroupVersionKind) (namespaced, known bool)
}

// NewParams returns an empty list. scope reports whether a kind is namespaced and whether it is known.
func NewParams(scope func(schema.GroupVersionKind) (namespaced, known bool)) *Params {
	return &Params{map[schema.GroupVersionKind]cache.Indexer{}, map[schema.GroupVersionKind]cache.Indexer{}, scope}
}

// Add stores a copy of an object with its apiVersion and kind set. The dispatcher wraps an object without a kind, and the
// recorder could not read the name of a wrapped object. The object must have metadata.
func (p *Params) Add(kind schema.GroupVersionKind, object runtime.Object) error {
	object, bare := object.DeepCopyObject(), object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kind)
	if _, custom := bare.(runtime.Unstructured); !custom {
		bare.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return errors.Join(store(p.stores, kind).Add(object), store(p.bare, kind).Add(bare))
}

func store(in map[schema.GroupVersionKind]cache.Indexer, kind schema.GroupVersionKind) cache.Indexer {
	if in[kind] == nil {
		in[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	return in[kind]
}

// informer returns the informer and the scope of the parameters of a policy. Both are nil if the policy has no parameters. The
// error is that of the API server for an unknown kind.
func (p *Params) informer(paramKind *admissionregistrationv1.ParamKind, mutating bool) (informers.GenericInformer, meta.RESTScope, error) {
	if paramKind == nil {
		return nil, nil, nil
	}
	kind := schema.FromAPIVersionAndKind(paramKind.APIVersion, paramKind.Kind)
	namespaced, known := p.scope(kind)
	of := p.stores
	if mutating {
		of = p.bare
	}
	switch {
	case !known:
		return nil, nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", kind)
	case namespaced:
		return paramInformer{store(of, kind), kind}, meta.RESTScopeNamespace, nil
	}
	return paramInformer{store(of, kind), kind}, meta.RESTScopeRoot, nil
}

// A paramInformer has the parameters of one kind.
type paramInformer struct {
	objects cache.Indexer
	kind    schema.GroupVersionKind
}

// Informer returns an informer that has synced.
func (i paramInformer) Informer() cache.SharedIndexInformer { return synced{} }

// Lister returns a lister of the parameters.
func (i paramInformer) Lister() cache.GenericLister {
	resource, _ := meta.UnsafeGuessKindToResource(i.kind) // only for messages
	return cache.NewGenericLister(i.objects, resource.GroupResource())
}

// synced is an informer that has synced. The dispatcher calls only HasSynced.
type synced struct{ cache.SharedIndexInformer }

// HasSynced returns true.
func (synced) HasSynced() bool { return true }
