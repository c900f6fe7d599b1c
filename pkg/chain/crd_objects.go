// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
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
	return r.versions[kind.Version]
}

// coerce does to a custom resource what decoding into Go types does to others: unknown fields are
// dropped, and told, nulls and metadata are checked (unstructuredSchemaCoercer.apply). If it is lenient,
// metadata of a wrong type are dropped.
func (r *customResource) coerce(u *unstructured.Unstructured, lenient bool) (unknown []error, err error) {
	kind := u.GroupVersionKind()
	s := r.schemas[kind.Version]
	meta, found, paths, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{DropMalformedFields: lenient, ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	if !r.definition.Spec.PreserveUnknownFields {
		paths = append(paths, structuralpruning.PruneWithOptions(u.Object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		structuraldefaulting.PruneNonNullableNullsWithoutDefaults(u.Object, s)
	}
	problem, more := objectmeta.CoerceWithOptions(nil, u.Object, s, false, objectmeta.CoerceOptions{DropInvalidFields: lenient, ReturnUnknownFieldPaths: true})
	if problem != nil {
		return nil, problem
	}
	u.SetGroupVersionKind(kind)
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, err
		}
	}
	for _, path := range append(paths, more...) {
		unknown = append(unknown, fmt.Errorf("unknown field %q", path))
	}
	return unknown, nil
}

// stored is the object as it is after it has been written to the storage and read again. Only that is
// pruned again: webhooks see each other's unknown fields.
func (r *customResource) stored(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	version := u.GroupVersionKind().GroupVersion()
	storage, err := apihelpers.GetCRDStorageVersion(r.definition)
	if err != nil {
		return nil, err
	}
	if version.Version != storage {
		// What is in the version of the storage is written as it is.
		if u, err = r.convert(u, schema.GroupVersion{Group: version.Group, Version: storage}); err != nil {
			return nil, err
		}
		if _, err := r.coerce(u, false); err != nil {
			return nil, err
		}
	}
	if _, err := r.coerce(u, true); err != nil {
		return nil, err
	}
	r.defaults(u)
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

func (r *customResource) defaults(u *unstructured.Unstructured) {
	structuraldefaulting.Default(u.Object, r.schemas[u.GroupVersionKind().Version])
}

// errNotServed is of requests that no API server has an address for.
var errNotServed = errors.New("this version of the custom resource is not served")

func (o *objects) serves(kind schema.GroupVersionKind) error {
	r := o.custom[kind.GroupKind()]
	if r == nil {
		return nil
	}
	if v := r.versions[kind.Version]; v == nil || !v.served {
		return fmt.Errorf("%s: %w", kind, errNotServed)
	}
	return nil
}

// newest is the newest served version that is not deprecated, if it is newer than old.
func newest(d *apiextensionsv1.CustomResourceDefinition, old string) string {
	best := ""
	for _, v := range d.Spec.Versions {
		if v.Served && !v.Deprecated && version.CompareKubeAwareVersionStrings(old, v.Name) < 0 &&
			(best == "" || version.CompareKubeAwareVersionStrings(best, v.Name) < 0) {
			best = v.Name
		}
	}
	return best
}
