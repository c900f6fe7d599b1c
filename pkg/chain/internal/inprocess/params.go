// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/k8svalidation"
)

// Scope returns whether the objects of a kind are in namespaces. known is false for a kind that is neither one of
// Kubernetes' own nor defined.
func (o *Objects) Scope(kind schema.GroupVersionKind) (namespaced, known bool) {
	if r := o.Custom[kind.GroupKind()]; r != nil {
		return r.Definition.Spec.Scope == apiextensionsv1.NamespaceScoped, o.CustomVersion(kind) != nil
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return !k8svalidation.ClusterScoped(resource.GroupResource()), o.scheme.Recognizes(kind)
}

// Param returns an object as the API server's informers have it, with its kind: as a Go type for Kubernetes' own kinds,
// and unstructured for custom resources.
func (o *Objects) Param(object runtime.Object) (schema.GroupVersionKind, runtime.Object, error) {
	if _, err := meta.Accessor(object); err != nil {
		return schema.GroupVersionKind{}, nil, err
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		kinds, _, err := o.scheme.ObjectKinds(object)
		if err != nil {
			return schema.GroupVersionKind{}, nil, err
		}
		return kinds[0], object, nil
	}
	kind := u.GroupVersionKind()
	if kind.Version == "" || kind.Kind == "" {
		return kind, nil, fmt.Errorf("%s has no apiVersion and kind", u.GetName())
	}
	if !o.scheme.Recognizes(kind) {
		return kind, u, nil
	}
	typed, err := o.scheme.New(kind)
	if err != nil {
		return kind, nil, err
	}
	return kind, typed, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed)
}
