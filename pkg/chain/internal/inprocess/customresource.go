// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/customresource"
)

// A customResource is a compiled CustomResourceDefinition with the converter between its versions.
type customResource struct {
	*customresource.Resource
	convertor runtime.ObjectConvertor
}

func newCustomResource(d *apiextensionsv1.CustomResourceDefinition) (*customResource, error) {
	r, err := customresource.New(d)
	if err != nil {
		return nil, err
	}
	return &customResource{Resource: r}, nil
}

// stored returns the object as the API server would read it from the storage after writing it. Unknown fields that
// webhooks add are pruned here and not earlier, so that later webhooks see them.
func (r *customResource) stored(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	version := u.GroupVersionKind().GroupVersion()
	storage, err := apihelpers.GetCRDStorageVersion(r.Definition)
	if err != nil {
		return nil, err
	}
	if version.Version != storage {
		// An object in the storage version needs no conversion.
		if u, err = r.convert(u, schema.GroupVersion{Group: version.Group, Version: storage}); err != nil {
			return nil, err
		}
		if _, err := r.Coerce(u, false); err != nil {
			return nil, err
		}
	}
	if _, err := r.Coerce(u, true); err != nil {
		return nil, err
	}
	r.Default(u)
	if version.Version != storage {
		return r.convert(u, version)
	}
	return u, nil
}

func (r *customResource) convert(u *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
	obj, err := r.convertor.ConvertToVersion(u, to)
	if err != nil {
		return nil, err
	}
	converted, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("conversion to %v returned a %T", to, obj)
	}
	return converted, nil
}
