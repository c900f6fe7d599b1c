// SPDX-License-Identifier: Apache-2.0

package policy

import (
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
	stores map[schema.GroupVersionKind]cache.Indexer
	// scope returns whether the objects of a kind are in namespaces. It returns false if the kind is unknown.
	scope func(schema.GroupVersionKind) (namespaced, known bool)
}

// NewParams returns an empty list. scope says whether the objects of a kind are in namespaces, or that it does not know
// the kind.
func NewParams(scope func(schema.GroupVersionKind) (namespaced, known bool)) *Params {
	return &Params{map[schema.GroupVersionKind]cache.Indexer{}, scope}
}

// Add adds a copy of an object of a kind. The object must have metadata. The copy has its kind. The API server's own
// objects have none, so its code wraps them, and their names could not be recorded.
func (p *Params) Add(kind schema.GroupVersionKind, object runtime.Object) error {
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kind)
	return p.store(kind).Add(object)
}

func (p *Params) store(kind schema.GroupVersionKind) cache.Indexer {
	if p.stores[kind] == nil {
		p.stores[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	return p.stores[kind]
}

// of returns the informer and the scope of the parameters of a policy. Both are nil if the policy has no parameters. The
// error is that of the API server for an unknown kind.
func (p *Params) of(of *admissionregistrationv1.ParamKind) (informers.GenericInformer, meta.RESTScope, error) {
	if of == nil {
		return nil, nil, nil
	}
	kind := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)
	namespaced, known := p.scope(kind)
	switch {
	case !known:
		return nil, nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", kind)
	case namespaced:
		return informer{p.store(kind), kind}, meta.RESTScopeNamespace, nil
	}
	return informer{p.store(kind), kind}, meta.RESTScopeRoot, nil
}

// An informer has the parameters of one kind.
type informer struct {
	objects cache.Indexer
	kind    schema.GroupVersionKind
}

// Informer returns an informer that has synced.
func (i informer) Informer() cache.SharedIndexInformer { return synced{} }

// Lister returns a lister of the parameters.
func (i informer) Lister() cache.GenericLister {
	resource, _ := meta.UnsafeGuessKindToResource(i.kind) // only for messages
	return cache.NewGenericLister(i.objects, resource.GroupResource())
}

// synced is an informer of which only HasSynced is called.
type synced struct{ cache.SharedIndexInformer }

// HasSynced returns true.
func (synced) HasSynced() bool { return true }
