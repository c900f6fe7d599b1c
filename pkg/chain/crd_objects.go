// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// customOf is nil for what is no custom resource, or one of which nothing is known.
func (o *objects) customOf(obj runtime.Object) *customResource {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	return o.custom[u.GroupVersionKind().GroupKind()]
}

func (o *objects) customVersion(kind schema.GroupVersionKind) *customVersion {
	r := o.custom[kind.GroupKind()]
	if r == nil {
		return nil
	}
	return r.Versions[kind.Version]
}

// stored is the object as it is after it has been written to the storage and read again. Only that is
// pruned again: webhooks see each other's unknown fields.
func (r *customResource) stored(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	version := u.GroupVersionKind().GroupVersion()
	storage, err := apihelpers.GetCRDStorageVersion(r.Definition)
	if err != nil {
		return nil, err
	}
	if version.Version != storage {
		// What is in the version of the storage is written as it is.
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
		return nil, fmt.Errorf("converting to %v has made a %T", to, obj)
	}
	return converted, nil
}

// errNotServed is of requests that no API server has an address for.
var errNotServed = errors.New("this version of the custom resource is not served")

func (o *objects) serves(kind schema.GroupVersionKind) error {
	r := o.custom[kind.GroupKind()]
	if r == nil {
		return nil
	}
	if v := r.Versions[kind.Version]; v == nil || !v.Served {
		return fmt.Errorf("%s: %w", kind, errNotServed)
	}
	return nil
}
